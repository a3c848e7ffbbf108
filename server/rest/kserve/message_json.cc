#include "server/rest/kserve/message_json.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "google/protobuf/descriptor.h"

namespace sfmamba::rest {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void AppendMessage(const Message& message, std::string* json);

// A field's value, or the i-th of a repeated one.
class Value {
 public:
  Value(const Message& message, const FieldDescriptor& field, int i)
      : message_(message),
        field_(field),
        get_(*message.GetReflection()),
        i_(i) {}

  void AppendTo(std::string* json) const {
    switch (field_.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return Append(&Reflection::GetInt32, &Reflection::GetRepeatedInt32,
                      json);
      case FieldDescriptor::CPPTYPE_INT64:
        return Append(&Reflection::GetInt64, &Reflection::GetRepeatedInt64,
                      json);
      case FieldDescriptor::CPPTYPE_UINT32:
        return Append(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32,
                      json);
      case FieldDescriptor::CPPTYPE_UINT64:
        return Append(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64,
                      json);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return Append(&Reflection::GetDouble, &Reflection::GetRepeatedDouble,
                      json);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return Append(&Reflection::GetFloat, &Reflection::GetRepeatedFloat,
                      json);
      case FieldDescriptor::CPPTYPE_BOOL: {
        const bool value = field_.is_repeated()
                               ? get_.GetRepeatedBool(message_, &field_, i_)
                               : get_.GetBool(message_, &field_);
        *json += value ? "true" : "false";
        return;
      }
      case FieldDescriptor::CPPTYPE_ENUM: {
        const auto* value = field_.is_repeated()
                                ? get_.GetRepeatedEnum(message_, &field_, i_)
                                : get_.GetEnum(message_, &field_);
        *json += base::JsonString(value->name());
        return;
      }
      case FieldDescriptor::CPPTYPE_STRING:
        *json += base::JsonString(
            field_.is_repeated() ? get_.GetRepeatedString(message_, &field_, i_)
                                 : get_.GetString(message_, &field_));
        return;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        AppendMessage(field_.is_repeated()
                          ? get_.GetRepeatedMessage(message_, &field_, i_)
                          : get_.GetMessage(message_, &field_),
                      json);
    }
  }

 private:
  template <typename One, typename Repeated>
  void Append(One one, Repeated repeated, std::string* json) const {
    absl::StrAppend(json, field_.is_repeated()
                              ? (get_.*repeated)(message_, &field_, i_)
                              : (get_.*one)(message_, &field_));
  }

  const Message& message_;
  const FieldDescriptor& field_;
  const Reflection& get_;
  const int i_;
};

// The entries of a map, whose keys are strings.
void AppendMap(const Message& message, const FieldDescriptor& field, int size,
               std::string* json) {
  json->push_back('{');
  for (int i = 0; i < size; ++i) {
    const Message& entry =
        message.GetReflection()->GetRepeatedMessage(message, &field, i);
    if (i > 0) json->push_back(',');
    Value(entry, *field.message_type()->map_key(), 0).AppendTo(json);
    json->push_back(':');
    Value(entry, *field.message_type()->map_value(), 0).AppendTo(json);
  }
  json->push_back('}');
}

void AppendField(const Message& message, const FieldDescriptor& field,
                 std::string* json) {
  if (!field.is_repeated()) return Value(message, field, 0).AppendTo(json);
  const int size = message.GetReflection()->FieldSize(message, &field);
  if (field.is_map()) return AppendMap(message, field, size, json);
  json->push_back('[');
  for (int i = 0; i < size; ++i) {
    if (i > 0) json->push_back(',');
    Value(message, field, i).AppendTo(json);
  }
  json->push_back(']');
}

// Messages and alternatives may be absent.
bool IsAbsent(const Message& message, const FieldDescriptor& field) {
  return field.has_presence() &&
         !message.GetReflection()->HasField(message, &field);
}

void AppendMessage(const Message& message, std::string* json) {
  json->push_back('{');
  bool first = true;
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (IsAbsent(message, field)) continue;
    absl::StrAppend(json, first ? "" : ",", base::JsonString(field.name()),
                    ":");
    AppendField(message, field, json);
    first = false;
  }
  json->push_back('}');
}

}  // namespace

std::string MessageJson(const Message& message) {
  std::string json;
  AppendMessage(message, &json);
  return json;
}

}  // namespace sfmamba::rest
