#include "server/rest/kserve/message_json.h"

#include "google/protobuf/descriptor.h"
#include "nlohmann/json.hpp"

namespace sfmamba::rest {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Json = nlohmann::ordered_json;

Json ToJson(const Message& message);

// A field's value, or the i-th of a repeated one.
Json ValueOf(const Message& message, const FieldDescriptor* field, int i = 0) {
  const auto& get = *message.GetReflection();
  const bool one = !field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return one ? get.GetInt32(message, field)
                 : get.GetRepeatedInt32(message, field, i);
    case FieldDescriptor::CPPTYPE_INT64:
      return one ? get.GetInt64(message, field)
                 : get.GetRepeatedInt64(message, field, i);
    case FieldDescriptor::CPPTYPE_UINT32:
      return one ? get.GetUInt32(message, field)
                 : get.GetRepeatedUInt32(message, field, i);
    case FieldDescriptor::CPPTYPE_UINT64:
      return one ? get.GetUInt64(message, field)
                 : get.GetRepeatedUInt64(message, field, i);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return one ? get.GetDouble(message, field)
                 : get.GetRepeatedDouble(message, field, i);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return one ? get.GetFloat(message, field)
                 : get.GetRepeatedFloat(message, field, i);
    case FieldDescriptor::CPPTYPE_BOOL:
      return one ? get.GetBool(message, field)
                 : get.GetRepeatedBool(message, field, i);
    case FieldDescriptor::CPPTYPE_ENUM:
      return (one ? get.GetEnum(message, field)
                  : get.GetRepeatedEnum(message, field, i))
          ->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return one ? get.GetString(message, field)
                 : get.GetRepeatedString(message, field, i);
    default:
      return ToJson(one ? get.GetMessage(message, field)
                        : get.GetRepeatedMessage(message, field, i));
  }
}

Json ToJson(const Message& message) {
  const auto& get = *message.GetReflection();
  Json json = Json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    Json& value = json[field->name()];
    if (!field->is_repeated()) {
      // Messages and alternatives may be absent.
      if (field->has_presence() && !get.HasField(message, field)) {
        json.erase(field->name());
      } else {
        value = ValueOf(message, field);
      }
      continue;
    }
    value = field->is_map() ? Json::object() : Json::array();
    for (int j = 0; j < get.FieldSize(message, field); ++j) {
      if (!field->is_map()) {
        value.push_back(ValueOf(message, field, j));
        continue;
      }
      const Message& entry = get.GetRepeatedMessage(message, field, j);
      const auto& type = *field->message_type();
      value[ValueOf(entry, type.map_key()).get<std::string>()] =
          ValueOf(entry, type.map_value());
    }
  }
  return json;
}

}  // namespace

std::string MessageJson(const Message& message) {
  return ToJson(message).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sfmamba::rest
