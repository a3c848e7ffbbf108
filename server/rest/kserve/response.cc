#include "server/rest/kserve/response.h"

#include <charconv>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "google/protobuf/descriptor.h"
#include "nlohmann/json.hpp"

namespace sfmamba::rest {
namespace {

using base::JsonString;
using Tensor = inference::packed::ModelInferResponse::InferOutputTensor;

constexpr size_t kLongestNumber = 32;  // Most characters of a float.

template <typename T>
void AppendNumber(T value, std::string* json) {
  char digits[kLongestNumber];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  json->append(digits, end - digits);
}

template <typename T>
void AppendNumbers(absl::string_view raw, std::string* json) {
  json->reserve(json->size() + 2 * raw.size());
  for (size_t at = 0; at + sizeof(T) <= raw.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, &raw[at], sizeof(value));
    if (at > 0) json->push_back(',');
    AppendNumber(value, json);
  }
}

void AppendStrings(absl::string_view raw, std::string* json) {
  uint32_t length;
  for (bool first = true; raw.size() >= sizeof(length); first = false) {
    std::memcpy(&length, raw.data(), sizeof(length));
    raw.remove_prefix(sizeof(length));
    absl::StrAppend(json, first ? "" : ",", JsonString(raw.substr(0, length)));
    raw.remove_prefix(std::min<size_t>(length, raw.size()));
  }
}

void AppendData(absl::string_view datatype, absl::string_view raw,
                std::string* json) {
  *json += ",\"data\":[";
  if (datatype == "FP32") {
    AppendNumbers<float>(raw, json);
  } else if (datatype == "INT32") {
    AppendNumbers<int32_t>(raw, json);
  } else if (datatype == "UINT8") {
    AppendNumbers<uint8_t>(raw, json);
  } else {
    AppendStrings(raw, json);
  }
  json->push_back(']');
}

void AppendTensor(const Tensor& tensor, std::string* json) {
  absl::StrAppend(json, "{\"name\":", JsonString(tensor.name()),
                  ",\"datatype\":", JsonString(tensor.datatype()),
                  ",\"shape\":[");
  for (int i = 0; i < tensor.shape_size(); ++i) {
    absl::StrAppend(json, i > 0 ? "," : "", tensor.shape(i));
  }
  json->push_back(']');
}

// Says where the elements are.
void AppendSharedMemory(const Tensor& tensor, std::string* json) {
  const auto& parameters = tensor.parameters();
  absl::StrAppend(
      json, ",\"parameters\":{\"shared_memory_region\":",
      JsonString(parameters.at("shared_memory_region").string_param()),
      ",\"shared_memory_byte_size\":",
      parameters.at("shared_memory_byte_size").int64_param(), "}");
}

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

http::HttpResponse InferResponse(
    const OutputForms& forms, inference::packed::ModelInferResponse* answer) {
  std::string json =
      absl::StrCat("{\"model_name\":", JsonString(answer->model_name()),
                   ",\"model_version\":", JsonString(answer->model_version()));
  if (!answer->id().empty()) {
    absl::StrAppend(&json, ",\"id\":", JsonString(answer->id()));
  }
  json += ",\"outputs\":[";
  std::vector<std::string> binary;
  for (int i = 0; i < answer->outputs_size(); ++i) {
    const Tensor& tensor = answer->outputs(i);
    std::string& raw = *answer->mutable_raw_output_contents(i);
    if (i > 0) json.push_back(',');
    AppendTensor(tensor, &json);
    if (tensor.parameters().contains("shared_memory_region")) {
      AppendSharedMemory(tensor, &json);
    } else if (forms.IsBinary(i)) {
      absl::StrAppend(
          &json, ",\"parameters\":{\"binary_data_size\":", raw.size(), "}");
      binary.push_back(std::move(raw));
    } else {
      AppendData(tensor.datatype(), raw, &json);
    }
    json.push_back('}');
  }
  json += "]}";
  if (binary.empty()) return JsonResponse(std::move(json));
  http::HttpResponse response;
  response.headers = {
      {"Content-Type", "application/octet-stream"},
      {"Inference-Header-Content-Length", absl::StrCat(json.size())}};
  response.body.push_back(std::move(json));
  for (std::string& raw : binary) response.body.push_back(std::move(raw));
  return response;
}

http::HttpResponse JsonResponse(std::string json) {
  http::HttpResponse response;
  response.headers = {{"Content-Type", "application/json"}};
  response.body.push_back(std::move(json));
  return response;
}

std::string MessageJson(const Message& message) {
  return ToJson(message).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sfmamba::rest
