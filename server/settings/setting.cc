#include "server/settings/setting.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/proto_duration.h"
#include "base/utf8.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace sfmamba::server {
namespace {

using google::protobuf::Duration;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

// The maximum number of bytes of a rejected value that an error contains.
constexpr size_t kMaxShown = 64;
// The longest duration that protobuf can represent.
constexpr absl::Duration kLongest = absl::Seconds(int64_t{315'576'000'000});

bool IsDuration(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         field.message_type() == Duration::descriptor();
}

// Formats choices as "a", "a or b", or "a, b or c".
std::string JoinChoices(std::vector<std::string> choices) {
  if (choices.size() < 2) return absl::StrJoin(choices, "");
  const std::string last = std::move(choices.back());
  choices.pop_back();
  return absl::StrCat(absl::StrJoin(choices, ", "), " or ", last);
}

// Returns the names of an enum's values except the unset value 0.
std::vector<std::string> EnumNames(const FieldDescriptor& field) {
  std::vector<std::string> names;
  for (int i = 0; i < field.enum_type()->value_count(); ++i) {
    const auto* value = field.enum_type()->value(i);
    if (value->number() != 0) names.push_back(value->name());
  }
  return names;
}

// Describes the syntax of the values of `field`.
std::string DescribeForm(const FieldDescriptor& field) {
  if (IsDuration(field)) return "a duration such as 1.5s";
  const bool bytes = SettingOf(field).unit() == "bytes";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      if (field.is_repeated()) return "whole numbers such as 1,2";
      return bytes ? "a number of bytes such as 64MiB" : "a whole number";
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return field.is_repeated() ? "numbers such as 0.5,1" : "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return absl::StrCat("one of ", absl::StrJoin(EnumNames(field), ", "));
    default:
      return "text in UTF-8";
  }
}

// Converts a number of bytes with a suffix, such as 1MiB, to a plain number.
// Returns all other values unchanged.
std::string WithoutSuffix(const FieldDescriptor& field,
                          absl::string_view text) {
  static constexpr std::pair<absl::string_view, int> kSuffixes[] = {
      {"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
  if (SettingOf(field).unit() != "bytes") return std::string(text);
  for (const auto& [suffix, shift] : kSuffixes) {
    absl::string_view digits = text;
    int64_t number = 0;
    if (absl::ConsumeSuffix(&digits, suffix) &&
        absl::SimpleAtoi(digits, &number) && number >= 0 &&
        number <= std::numeric_limits<int64_t>::max() >> shift) {
      return absl::StrCat(number << shift);
    }
  }
  return std::string(text);
}

// Returns the number in `text`, or the duration in seconds if the field is a
// duration. Returns NaN if `text` is malformed.
double NumberOf(const FieldDescriptor& field, absl::string_view text) {
  if (IsDuration(field)) {
    absl::Duration duration;
    return absl::ParseDuration(text, &duration)
               ? absl::ToDoubleSeconds(duration)
               : NAN;
  }
  double number;
  return absl::SimpleAtod(WithoutSuffix(field, text), &number) ? number : NAN;
}

// Returns true if `number` is in the range that the options of `field` state.
bool IsInRange(const FieldDescriptor& field, double number) {
  absl::string_view range = SettingOf(field).range();
  if (!std::isfinite(number)) return false;
  if (range == "any") return true;
  if (absl::ConsumePrefix(&range, "above ")) {
    return number > NumberOf(field, range);
  }
  if (absl::ConsumePrefix(&range, "at least ")) {
    return number >= NumberOf(field, range);
  }
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(range, " to ");
  return number >= NumberOf(field, ends.first) &&
         number <= NumberOf(field, ends.second);
}

// Returns the value of `field` as text, with strings in quotes. If `field` is a
// list, `index` selects the element. For other fields, `index` is -1.
std::string TextOf(const Message& message, const FieldDescriptor& field,
                   int index) {
  if (IsDuration(field)) {
    return absl::FormatDuration(
        base::FromProto(*google::protobuf::DynamicCastToGenerated<Duration>(
            &message.GetReflection()->GetMessage(message, &field))));
  }
  std::string text;
  TextFormat::PrintFieldValueToString(message, &field, index, &text);
  return text;
}

bool IsAllowed(const FieldDescriptor& field, const std::string& text) {
  const v1::Setting& setting = SettingOf(field);
  // An enum value that has no name is not allowed. TextOf() prints the number
  // of such a value, so FindValueByName() does not find it.
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    return field.enum_type()->FindValueByName(text) != nullptr;
  }
  if (!setting.range().empty()) return IsInRange(field, NumberOf(field, text));
  if (setting.one_of().empty()) return true;
  for (const std::string& choice : setting.one_of()) {
    if (text == absl::StrCat("\"", choice, "\"")) return true;
  }
  return false;
}

absl::Status CheckFields(const Message& message, const std::string& prefix) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool list = field->is_repeated();
    const int count = list ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const std::string name = absl::StrCat(
          prefix, field->name(), list ? absl::StrCat("[", i, "]") : "");
      absl::Status status;
      if (IsGroup(*field)) {
        status =
            CheckFields(list ? reflection.GetRepeatedMessage(message, field, i)
                             : reflection.GetMessage(message, field),
                        name + ".");
      } else {
        const std::string got = TextOf(message, *field, list ? i : -1);
        if (!IsAllowed(*field, got)) {
          status = absl::InvalidArgumentError(absl::StrCat(
              name, ": got ", got, ", expected ", DescribeRange(*field)));
        }
      }
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

// Prevents protobuf from writing errors to stderr.
class NoErrors : public google::protobuf::io::ErrorCollector {
  void AddError(int, int, const std::string&) override {}
};

// Parses one value and sets `field`, or appends the value if `field` is a list.
// Returns false if `text` is malformed.
bool ParseValue(const FieldDescriptor& field, absl::string_view text,
                Message* message) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  if (IsDuration(field)) {
    absl::Duration duration;
    if (!absl::ParseDuration(text, &duration)) return false;
    if (absl::AbsDuration(duration) > kLongest) return false;
    base::ToProto(duration, google::protobuf::DynamicCastToGenerated<Duration>(
                                reflection.MutableMessage(message, &field)));
    return true;
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    if (base::Utf8Length(text) < 0) return false;
    field.is_repeated()
        ? reflection.AddString(message, &field, std::string(text))
        : reflection.SetString(message, &field, std::string(text));
    return true;
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    if (text != "true" && text != "false") return false;
    reflection.SetBool(message, &field, text == "true");
    return true;
  }
  // Protobuf's text format accepts any number for an enum, but only names are
  // allowed here.
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM &&
      field.enum_type()->FindValueByName(std::string(text)) == nullptr) {
    return false;
  }
  NoErrors errors;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  return parser.ParseFieldValueFromString(WithoutSuffix(field, text), &field,
                                          message);
}

}  // namespace

const v1::Setting& SettingOf(const FieldDescriptor& field) {
  return field.options().GetExtension(v1::setting);
}

std::vector<Topic> ByTopic(
    const std::vector<const google::protobuf::Descriptor*>& messages) {
  const google::protobuf::EnumDescriptor& topics =
      *v1::Setting::Topic_descriptor();
  std::vector<Topic> all;
  for (int i = 0; i < topics.value_count(); ++i) {
    Topic topic;
    topic.title = topics.value(i)->options().GetExtension(v1::meaning);
    for (const google::protobuf::Descriptor* message : messages) {
      for (int j = 0; j < message->field_count(); ++j) {
        const FieldDescriptor& field = *message->field(j);
        if (SettingOf(field).topic() == topics.value(i)->number()) {
          topic.fields.push_back(&field);
        }
      }
    }
    if (!topic.fields.empty()) all.push_back(std::move(topic));
  }
  return all;
}

bool IsGroup(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         !IsDuration(field);
}

std::string DescribeRange(const FieldDescriptor& field) {
  const v1::Setting& setting = SettingOf(field);
  if (!setting.one_of().empty()) {
    return JoinChoices({setting.one_of().begin(), setting.one_of().end()});
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    return JoinChoices(EnumNames(field));
  }
  if (setting.range() == "any") return "a finite number";
  // If the range ends in a suffix such as MiB, the range already contains the
  // unit.
  if (setting.unit().empty() || absl::EndsWith(setting.range(), "iB")) {
    return setting.range();
  }
  return absl::StrCat(setting.range(), " ", setting.unit());
}

std::string DescribeDefault(const FieldDescriptor& field) {
  const v1::Setting& setting = SettingOf(field);
  if (setting.computed_default().empty()) {
    const bool is_false = field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL &&
                          setting.default_().empty();
    return is_false ? "false" : setting.default_();
  }
  return absl::StrCat(setting.computed_default(),
                      setting.default_().empty() ? "" : ", else ",
                      setting.default_());
}

absl::Status SetFromText(const FieldDescriptor& field, absl::string_view text,
                         Message* message) {
  message->GetReflection()->ClearField(message, &field);
  if (field.is_repeated() && text.empty()) return absl::OkStatus();
  return AddFromText(field, text, message);
}

absl::Status AddFromText(const FieldDescriptor& field, absl::string_view text,
                         Message* message) {
  std::vector<absl::string_view> values = {text};
  // A string may contain commas. For a list of strings, `text` is therefore a
  // single element.
  if (field.is_repeated() &&
      field.cpp_type() != FieldDescriptor::CPPTYPE_STRING) {
    values = absl::StrSplit(text, ',');
  }
  for (absl::string_view value : values) {
    if (ParseValue(field, value, message)) continue;
    const bool is_enum = field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM;
    const std::string range = is_enum ? "" : DescribeRange(field);
    return absl::InvalidArgumentError(absl::StrCat(
        "got \"", absl::CHexEscape(text.substr(0, kMaxShown)), "\", expected ",
        DescribeForm(field), range.empty() ? "" : ", ", range));
  }
  return absl::OkStatus();
}

void SetDefaults(Message* message) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message->GetDescriptor()->field(i);
    const bool is_set = field.is_repeated()
                            ? reflection.FieldSize(*message, &field) > 0
                            : reflection.HasField(*message, &field);
    if (is_set || SettingOf(field).default_().empty()) continue;
    // A test ensures that every default can be parsed.
    SetFromText(field, SettingOf(field).default_(), message).IgnoreError();
  }
}

absl::Status CheckRanges(const Message& message) {
  return CheckFields(message, "");
}

}  // namespace sfmamba::server
