#include "server/rest/query_fields.h"

#include <cstdint>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/proto_duration.h"
#include "base/utf8.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"
#include "server/errors/reasons.h"

namespace sfmamba::rest {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::Duration;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kMaxShown = 64;  // Most bytes shown of a refused text.
// The longest duration that protobuf has.
constexpr absl::Duration kLongest = absl::Seconds(int64_t{315'576'000'000});

std::string Shown(absl::string_view text) {
  return absl::CHexEscape(text.substr(0, kMaxShown));
}

bool IsDuration(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         field.message_type() == Duration::descriptor();
}

bool IsSettable(const FieldDescriptor& field) {
  if (field.type() == FieldDescriptor::TYPE_BYTES) return false;
  return field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE ||
         IsDuration(field);
}

// Lists an enum's names, without the unset value.
std::string Names(const EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() != 0) names.push_back(type.value(i)->name());
  }
  return absl::StrJoin(names, ", ");
}

std::string Expected(const FieldDescriptor& field) {
  if (IsDuration(field)) return "a duration such as 1.5s";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      return field.is_repeated() ? "whole numbers such as 1,2"
                                 : "a whole number";
    case FieldDescriptor::CPPTYPE_FLOAT:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return absl::StrCat("one of ", Names(*field.enum_type()));
    default:
      return "text in UTF-8";
  }
}

bool SetDuration(const std::string& text, Message* message,
                 const FieldDescriptor& field) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration)) return false;
  if (absl::AbsDuration(duration) > kLongest) return false;
  base::ToProto(duration,
                static_cast<Duration*>(
                    message->GetReflection()->MutableMessage(message, &field)));
  return true;
}

// Sets a field that is not repeated; false if the text does not fit its type.
bool SetOne(const std::string& text, Message* message,
            const FieldDescriptor& field) {
  const auto& fields = *message->GetReflection();
  if (IsDuration(field)) return SetDuration(text, message, field);
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: {
      int32_t value;
      if (!absl::SimpleAtoi(text, &value)) return false;
      fields.SetInt32(message, &field, value);
      return true;
    }
    case FieldDescriptor::CPPTYPE_FLOAT: {
      float value;
      if (!absl::SimpleAtof(text, &value)) return false;
      fields.SetFloat(message, &field, value);
      return true;
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      if (text != "true" && text != "false") return false;
      fields.SetBool(message, &field, text == "true");
      return true;
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto* value = field.enum_type()->FindValueByName(text);
      if (value == nullptr) return false;
      fields.SetEnum(message, &field, value);
      return true;
    }
    case FieldDescriptor::CPPTYPE_STRING:
      if (base::Utf8Length(text) < 0) return false;
      fields.SetString(message, &field, text);
      return true;
    default:
      return false;
  }
}

// Appends to a list of numbers.
bool AddAll(const std::string& text, Message* message,
            const FieldDescriptor& field) {
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_INT32) return false;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    int32_t value;
    if (!absl::SimpleAtoi(item, &value)) return false;
    message->GetReflection()->AddInt32(message, &field, value);
  }
  return true;
}

// Whether a field is a message whose own fields are parameters.
bool HasParameters(const FieldDescriptor& field) {
  // A picture's source, the oneof, comes in the body only.
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         !field.is_repeated() && field.containing_oneof() == nullptr &&
         !IsDuration(field);
}

// Adds the names of the parameters that set fields of `type`, with `prefix`
// before them. A field that is itself one of `messages` is passed over.
void AddNames(const Descriptor& type, const std::string& prefix,
              const std::vector<Message*>& messages,
              std::vector<std::string>* names) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string name = prefix + field.name();
    if (IsSettable(field)) {
      names->push_back(name);
    } else if (HasParameters(field) &&
               absl::c_none_of(messages, [&field](const Message* message) {
                 return message->GetDescriptor() == field.message_type();
               })) {
      AddNames(*field.message_type(), name + ".", messages, names);
    }
  }
}

// Lists the names of the parameters of `messages`.
std::string Names(const std::vector<Message*>& messages) {
  std::vector<std::string> names;
  for (const Message* message : messages) {
    AddNames(*message->GetDescriptor(), "", messages, &names);
  }
  return absl::StrJoin(names, ", ");
}

struct Place {
  Message* message = nullptr;
  const FieldDescriptor* field = nullptr;  // Null: not found.
};

// The field that `name` means within `message`; made if it is within others.
Place Find(absl::string_view name, Message* message) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(name, absl::MaxSplits('.', 1));
  const std::string first(parts.first);
  const auto& type = *message->GetDescriptor();
  const FieldDescriptor* field = type.FindFieldByName(first);
  if (field == nullptr) field = type.FindFieldByCamelcaseName(first);
  if (field == nullptr) return {};
  if (first.size() == name.size()) {
    return IsSettable(*field) ? Place{message, field} : Place{};
  }
  if (!HasParameters(*field)) return {};
  return Find(parts.second,
              message->GetReflection()->MutableMessage(message, field));
}

}  // namespace

absl::Status SetFromQuery(const std::multimap<std::string, std::string>& query,
                          const std::vector<Message*>& messages) {
  std::set<const FieldDescriptor*> seen;
  for (const auto& [name, text] : query) {
    Place place;
    for (Message* message : messages) {
      place = Find(name, message);
      if (place.field != nullptr) break;
    }
    const std::string shown = Shown(name);
    if (place.field == nullptr) {
      return server::InvalidField(
          shown,
          messages.empty()
              ? "got a parameter, expected none"
              : absl::StrCat("there is no such parameter, expected one of ",
                             Names(messages)));
    }
    if (place.field->is_repeated()) {
      if (AddAll(text, place.message, *place.field)) continue;
    } else {
      if (!seen.insert(place.field).second) {
        return server::InvalidField(shown, "got it twice, expected it once");
      }
      if (SetOne(text, place.message, *place.field)) continue;
    }
    return server::InvalidField(
        shown, absl::StrCat("got \"", Shown(text), "\", expected ",
                            Expected(*place.field)));
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::rest
