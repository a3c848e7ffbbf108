#include "server/rest/kserve/request.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "server/api/kserve/infer_request.h"
#include "server/api/kserve/published_model.h"
#include "server/call/wire/wire_request.h"
#include "server/errors/reasons.h"
#include "server/rest/prediction_body.h"

namespace sfmamba::rest {
namespace {

constexpr char kHeaderLength[] = "Inference-Header-Content-Length";
constexpr char kHeaderLengthKey[] = "inference-header-content-length";
// The maximum number of bytes of a header value in an error message.
constexpr size_t kMaxShown = 32;

// Returns the size of the JSON at the start of the body, or nullopt if the body
// is a picture.
absl::StatusOr<std::optional<size_t>> JsonBytes(
    const http::HttpRequest& request) {
  const size_t all = request.body.size();
  const auto header = request.headers.find(kHeaderLengthKey);
  std::optional<size_t> json;
  if (header == request.headers.end()) {
    if (!IsPicture(request.body)) json = all;
    return json;
  }
  size_t length;
  if (!absl::SimpleAtoi(header->second, &length) || length > all) {
    return server::InvalidField(
        kHeaderLength,
        absl::StrCat("got \"", header->second.substr(0, kMaxShown),
                     "\", expected 0 to ", all, ", the bytes of the body"));
  }
  if (length > 0) json = length;
  return json;
}

absl::Status WrongTail(size_t got, absl::string_view expected) {
  return server::InvalidField(
      "inputs",
      absl::StrCat("got ", got, " bytes after the JSON, expected ", expected));
}

// The maximum size in bytes of the body of a request about the model
// repository. gRPC requests without pictures have the same limit.
constexpr size_t kMaxBytes = 256 << 10;
constexpr size_t kMaxKeyShown = 60;

absl::Status Set(const std::string& key, const nlohmann::json& value,
                 inference::ModelRepositoryParameter* parameter) {
  if (value.is_boolean()) {
    parameter->set_bool_param(value.get<bool>());
  } else if (value.is_number_integer()) {
    parameter->set_int64_param(value.get<int64_t>());
  } else if (value.is_string()) {
    parameter->set_string_param(value.get<std::string>());
  } else {
    return server::InvalidField(
        absl::StrCat("parameters[\"", key.substr(0, kMaxKeyShown), "\"]"),
        absl::StrCat("got a value of type ", value.type_name(),
                     ", expected a text, a whole number or a boolean"));
  }
  return absl::OkStatus();
}

// Parses `body` and moves its member `name` into `*member`. Leaves `*member`
// null if there is no such member. Returns INVALID_ARGUMENT if the body is too
// large or is not an object, or if the member is not of type `type`.
absl::Status ReadMember(const std::string& body, const char* name,
                        nlohmann::json::value_t type, nlohmann::json* member) {
  if (body.empty()) return absl::OkStatus();
  if (body.size() > kMaxBytes) {
    return server::MalformedMessage(absl::StrCat(
        "got JSON of ", body.size(), " bytes, expected at most ", kMaxBytes));
  }
  auto json = nlohmann::json::parse(body, nullptr, false);
  if (!json.is_object()) {
    return server::MalformedMessage("got no JSON object, expected one");
  }
  const auto found = json.find(name);
  if (found == json.end()) return absl::OkStatus();
  *member = std::move(*found);
  if (member->type() == type) return absl::OkStatus();
  return server::InvalidField(
      name, absl::StrCat("got a value of type ", member->type_name(),
                         ", expected ", nlohmann::json(type).type_name()));
}

template <typename Request>
absl::Status ReadParameters(const std::string& body, Request* request) {
  nlohmann::json parameters;
  absl::Status status = ReadMember(
      body, "parameters", nlohmann::json::value_t::object, &parameters);
  for (const auto& [key, value] : parameters.items()) {
    if (status.ok()) {
      status = Set(key, value, &(*request->mutable_parameters())[key]);
    }
  }
  return status;
}

class InferPictures final : public OwnedPictures {
 public:
  InferPictures(const absl::Status& status, int max_images,
                int64_t max_raw_bytes, http::HttpRequest* request,
                server::MemoryBudget* memory,
                inference::ModelInferRequest* message, OutputForms* outputs)
      : OwnedPictures(request->body.size()) {
    const auto json = JsonBytes(*request);
    status_ = status;
    if (status_.ok()) status_ = json.status();
    if (!status_.ok()) return;
    owned_.push_back(std::move(request->body));
    if (json->has_value()) {
      status_ = ReadTensors(**json, max_images, max_raw_bytes, memory, message,
                            outputs);
    } else {
      SetPicture(message);
    }
    if (!status_.ok()) message->Clear();
  }

 private:
  // Makes `message` a request with one image. The whole body is the encoded
  // file of this image.
  void SetPicture(inference::ModelInferRequest* message) {
    auto* input = message->add_inputs();
    input->set_name(kserve::kInputName);
    input->set_datatype("BYTES");
    input->add_shape(1);
    message->add_raw_input_contents(call::IndexBytes(0));
    views_ = {owned_.front()};
    count_ = 1;
  }

  // Reads the body, which is in owned_ and starts with `json_bytes` bytes of
  // JSON. If the JSON contains the elements of the first input, they are
  // decoded and replace the body in owned_. The body is then no longer needed
  // and is freed. Otherwise the elements are the binary data after the JSON,
  // and the body stays in owned_.
  absl::Status ReadTensors(size_t json_bytes, int max_images,
                           int64_t max_raw_bytes, server::MemoryBudget* memory,
                           inference::ModelInferRequest* message,
                           OutputForms* outputs) {
    // Parsing needs about as much memory as the JSON. `hold` reserves this
    // memory until this function returns. Later the prediction reserves memory
    // for the message.
    const absl::StatusOr<server::MemoryHold> hold =
        memory->Take(server::MemoryUse::kMessage, json_bytes);
    if (!hold.ok()) return hold.status();
    const absl::string_view body = owned_.front();
    absl::StatusOr<InferJson> json =
        ReadInferJson(body.substr(0, json_bytes), max_raw_bytes);
    if (!json.ok()) return json.status();
    kserve::InferWire wire;
    wire.inputs = json->message.inputs_size();
    wire.outputs = json->message.outputs_size();
    // The elements of the first input, if the JSON contains them. Elements of
    // other inputs are not needed, because FindImages() refuses requests with
    // several inputs.
    std::optional<std::string> raw;
    int64_t at = json_bytes;
    for (InputData& input : json->inputs) {
      if (!input.raw.has_value() && !input.binary_bytes.has_value()) continue;
      const bool is_first = ++wire.raw_inputs == 1;
      if (input.raw.has_value()) {
        if (!is_first) continue;
        raw = *std::move(input.raw);
        wire.raw = {0, static_cast<int64_t>(raw->size())};
        continue;
      }
      const int64_t bytes = *input.binary_bytes;
      const int64_t left = body.size() - at;
      if (bytes > left) {
        return WrongTail(
            left, absl::StrCat(bytes, " or more as binary_data_size says"));
      }
      if (is_first) wire.raw = {at, bytes};
      at += bytes;
    }
    const int64_t left = body.size() - at;
    if (left > 0) {
      return WrongTail(left, "none beyond what binary_data_size says");
    }
    *message = std::move(json->message);
    *outputs = std::move(json->outputs);
    if (raw.has_value()) owned_.front() = *std::move(raw);
    bytes_ = owned_.front().size();
    const absl::string_view elements = owned_.front();
    const kserve::InferImages images =
        kserve::FindImages({elements}, wire, max_images, message);
    images_status_ = images.status;
    count_ = images.count;
    for (const call::WireExtent& extent : images.extents) {
      views_.push_back(elements.substr(extent.position, extent.length));
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<call::Pictures> ReadInferBody(
    const absl::Status& status, int max_images, int64_t max_raw_bytes,
    http::HttpRequest* request, server::MemoryBudget* memory,
    inference::ModelInferRequest* message, OutputForms* outputs) {
  return std::make_unique<InferPictures>(status, max_images, max_raw_bytes,
                                         request, memory, message, outputs);
}

absl::Status ReadControlBody(const std::string& body,
                             google::protobuf::Message* message) {
  using inference::RepositoryIndexRequest;
  using inference::RepositoryModelLoadRequest;
  using inference::RepositoryModelUnloadRequest;
  if (auto* index = dynamic_cast<RepositoryIndexRequest*>(message)) {
    nlohmann::json ready;
    const absl::Status status =
        ReadMember(body, "ready", nlohmann::json::value_t::boolean, &ready);
    index->set_ready(status.ok() && ready == true);
    return status;
  }
  if (auto* load = dynamic_cast<RepositoryModelLoadRequest*>(message)) {
    return ReadParameters(body, load);
  }
  if (auto* unload = dynamic_cast<RepositoryModelUnloadRequest*>(message)) {
    return ReadParameters(body, unload);
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::rest
