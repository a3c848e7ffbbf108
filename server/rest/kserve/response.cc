#include "server/rest/kserve/response.h"

#include <charconv>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/util/json_util.h"
#include "inference/grpc_service.pb.h"
#include "inference/packed_response.pb.h"
#include "nlohmann/json.hpp"

namespace sfmamba::rest {
namespace {

using base::JsonString;
using Tensor = inference::packed::ModelInferResponse::InferOutputTensor;

// The maximum length of a formatted number in characters.
constexpr size_t kLongestNumber = 32;

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

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Json = nlohmann::ordered_json;

void Unquote(const google::protobuf::Descriptor& type, Json* message);

// Converts 64-bit integers in `value` from JSON strings to JSON numbers,
// because protobuf writes 64-bit integers as strings. `field` describes the
// type of `value`.
void Unquote(const FieldDescriptor& field, Json* value) {
  if (field.is_map()) {
    for (Json& entry : *value) {
      Unquote(*field.message_type()->map_value(), &entry);
    }
  } else if (value->is_array()) {
    for (Json& one : *value) Unquote(field, &one);
  } else if (value->is_object()) {
    Unquote(*field.message_type(), value);
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT64 ||
             field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
    *value = Json::parse(value->get_ref<const std::string&>());
  }
}

void Unquote(const google::protobuf::Descriptor& type, Json* message) {
  for (auto& [name, value] : message->items()) {
    Unquote(*type.FindFieldByName(name), &value);
  }
}

http::HttpResponse JsonResponse(std::string json) {
  http::HttpResponse response;
  response.headers = {{"Content-Type", "application/json"}};
  response.body.push_back(std::move(json));
  return response;
}

// Returns the response to a liveness or readiness probe.
http::HttpResponse Probe(bool is_good, std::string json) {
  http::HttpResponse response = JsonResponse(std::move(json));
  if (!is_good) response.status = 400;
  return response;
}

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
    if (forms.IsBinary(i)) {
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

}  // namespace

http::HttpResponse KserveResponse(const OutputForms& forms,
                                  const std::string& model, Message* message) {
  using inference::packed::ModelInferResponse;
  if (auto* answer = dynamic_cast<ModelInferResponse*>(message)) {
    return InferResponse(forms, answer);
  }
  if (auto* live = dynamic_cast<inference::ServerLiveResponse*>(message)) {
    return Probe(live->live(), MessageJson(*live));
  }
  if (auto* ready = dynamic_cast<inference::ServerReadyResponse*>(message)) {
    return Probe(ready->ready(), MessageJson(*ready));
  }
  if (auto* ready = dynamic_cast<inference::ModelReadyResponse*>(message)) {
    return Probe(ready->ready(),
                 absl::StrCat("{\"name\":", JsonString(model), ",\"ready\":",
                              ready->ready() ? "true" : "false", "}"));
  }
  if (auto* config = dynamic_cast<inference::ModelConfigResponse*>(message)) {
    return JsonResponse(MessageJson(config->config()));
  }
  if (auto* index =
          dynamic_cast<inference::RepositoryIndexResponse*>(message)) {
    std::vector<std::string> models;
    for (const auto& one : index->models()) models.push_back(MessageJson(one));
    return JsonResponse(absl::StrCat("[", absl::StrJoin(models, ","), "]"));
  }
  if (message->GetDescriptor()->field_count() == 0) return {};
  return JsonResponse(MessageJson(*message));
}

std::string MessageJson(const Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(message, &text, options)
           .ok()) {
    return "{}";
  }
  Json json = Json::parse(text);
  Unquote(*message.GetDescriptor(), &json);
  return json.dump();
}

}  // namespace sfmamba::rest
