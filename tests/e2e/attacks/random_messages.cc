#include "tests/e2e/attacks/random_messages.h"

#include <iterator>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/util/json_util.h"

namespace sfmamba {

namespace pb = google::protobuf;

namespace {

constexpr int kMostDepth = 6;  // Limits how deep messages are nested.

}  // namespace

std::string RandomMessages::Next(const pb::Descriptor& type) {
  std::string bytes = Make(type)->SerializePartialAsString();
  Spoil(&bytes);
  return bytes;
}

std::string RandomMessages::NextJson(const pb::Descriptor& type) {
  std::string json;
  const auto made = pb::util::MessageToJsonString(*Make(type), &json);
  if (!made.ok()) return made.ToString();
  Spoil(&json);
  return json;
}

std::unique_ptr<pb::Message> RandomMessages::Make(const pb::Descriptor& type) {
  std::unique_ptr<pb::Message> message(
      pb::MessageFactory::generated_factory()->GetPrototype(&type)->New());
  Fill(message.get(), 0);
  return message;
}

void RandomMessages::Spoil(std::string* bytes) {
  if (bytes->empty() || !OneIn(30)) return;
  for (int left = 1 + Below(3); left > 0; --left) {
    (*bytes)[Below(static_cast<int>(bytes->size()))] =
        static_cast<char>(Below(256));
  }
}

int RandomMessages::Below(int n) {
  return std::uniform_int_distribution<int>(0, n - 1)(random_);
}

void RandomMessages::Fill(pb::Message* message, int depth) {
  const pb::Descriptor& type = *message->GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor& field = *type.field(i);
    const bool set = WordsOf(field) != nullptr ? !OneIn(30) : OneIn(5);
    if (set) FillField(message, field, depth);
  }
}

void RandomMessages::FillField(pb::Message* message,
                               const pb::FieldDescriptor& field, int depth) {
  const pb::Reflection& reflection = *message->GetReflection();
  const int count = field.is_repeated() && OneIn(8) ? Below(5) : 1;
  for (int i = 0; i < count; ++i) {
    const auto set = [&](auto repeated, auto single, auto value) {
      (reflection.*(field.is_repeated() ? repeated : single))(message, &field,
                                                              value);
    };
    using R = pb::Reflection;
    switch (field.cpp_type()) {
      case pb::FieldDescriptor::CPPTYPE_INT32:
        set(&R::AddInt32, &R::SetInt32, static_cast<int32_t>(Number(field)));
        break;
      case pb::FieldDescriptor::CPPTYPE_INT64:
        set(&R::AddInt64, &R::SetInt64, Number(field));
        break;
      case pb::FieldDescriptor::CPPTYPE_UINT32:
        set(&R::AddUInt32, &R::SetUInt32, static_cast<uint32_t>(Number(field)));
        break;
      case pb::FieldDescriptor::CPPTYPE_UINT64:
        set(&R::AddUInt64, &R::SetUInt64, static_cast<uint64_t>(Number(field)));
        break;
      case pb::FieldDescriptor::CPPTYPE_FLOAT:
        set(&R::AddFloat, &R::SetFloat, static_cast<float>(Number(field)) / 2);
        break;
      case pb::FieldDescriptor::CPPTYPE_DOUBLE:
        set(&R::AddDouble, &R::SetDouble,
            static_cast<double>(Number(field)) / 2);
        break;
      case pb::FieldDescriptor::CPPTYPE_BOOL:
        set(&R::AddBool, &R::SetBool, OneIn(2));
        break;
      case pb::FieldDescriptor::CPPTYPE_ENUM:
        set(&R::AddEnumValue, &R::SetEnumValue, Below(6));
        break;
      case pb::FieldDescriptor::CPPTYPE_STRING:
        set(&R::AddString, &R::SetString, Text(field));
        break;
      case pb::FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth == kMostDepth) return;
        Fill(field.is_repeated() ? reflection.AddMessage(message, &field)
                                 : reflection.MutableMessage(message, &field),
             depth + 1);
        break;
    }
  }
}

const std::vector<std::string>* RandomMessages::WordsOf(
    const pb::FieldDescriptor& field) const {
  for (const std::string& key :
       {absl::StrCat(field.containing_type()->name(), ".", field.name()),
        field.name()}) {
    const auto found = words_.find(key);
    if (found != words_.end()) return &found->second;
  }
  return nullptr;
}

const std::string* RandomMessages::Word(const pb::FieldDescriptor& field) {
  const std::vector<std::string>* words = WordsOf(field);
  if (words == nullptr || words->empty() || OneIn(20)) return nullptr;
  return &(*words)[Below(static_cast<int>(words->size()))];
}

std::string RandomMessages::Text(const pb::FieldDescriptor& field) {
  if (const std::string* word = Word(field)) return *word;
  std::string text(Below(8), '\0');
  for (char& c : text) c = static_cast<char>(Below(128));
  return text;
}

int64_t RandomMessages::Number(const pb::FieldDescriptor& field) {
  constexpr int64_t kBounds[] = {-1,
                                 std::numeric_limits<int32_t>::max(),
                                 std::numeric_limits<int32_t>::min(),
                                 std::numeric_limits<int64_t>::max(),
                                 std::numeric_limits<int64_t>::min(),
                                 int64_t{1} << 40,
                                 16384};
  int64_t number;
  const std::string* word = Word(field);
  if (word != nullptr && absl::SimpleAtoi(*word, &number)) return number;
  return OneIn(6) ? kBounds[Below(std::size(kBounds))] : Below(5);
}

}  // namespace sfmamba
