#include "server/rest/kserve/request.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/support/slice.h"
#include "inference/grpc_service.pb.h"
#include "nlohmann/json.hpp"
#include "server/call/wire/wire_cursor.h"
#include "server/errors/reasons.h"
#include "server/kserve/published_model.h"
#include "server/rest/prediction_body.h"

namespace sfmamba::rest {
namespace {

constexpr char kHeaderLength[] = "Inference-Header-Content-Length";
constexpr size_t kMaxShown = 32;  // Bytes of a header.
// The key of raw_input_contents on the wire: field 7, bytes.
constexpr char kRawKey = 7 << 3 | 2;
constexpr int kLengthBytes = 4;  // Bytes before each element of BYTES.

using Owner = std::shared_ptr<const std::string>;

// Returns a slice of a string, which the slice keeps alive.
grpc::Slice Share(const Owner& owner, absl::string_view bytes) {
  return grpc::Slice(
      const_cast<char*>(bytes.data()), bytes.size(),
      [](void* share) { delete static_cast<Owner*>(share); }, new Owner(owner));
}

// Writes a ModelInferRequest slice by slice.
class MessageWriter {
 public:
  explicit MessageWriter(const inference::ModelInferRequest& message) {
    slices_.emplace_back(message.SerializeAsString());
  }

  // Adds raw_input_contents, of which `before` stands before the others.
  void AddRaw(const Owner& owner, absl::string_view bytes,
              absl::string_view before = "") {
    std::string head(1, kRawKey);
    call::AppendVarint(before.size() + bytes.size(), &head);
    slices_.emplace_back(absl::StrCat(head, before));
    if (!bytes.empty()) slices_.push_back(Share(owner, bytes));
  }

  grpc::ByteBuffer Take() {
    return grpc::ByteBuffer(slices_.data(), slices_.size());
  }

 private:
  std::vector<grpc::Slice> slices_;
};

absl::StatusOr<size_t> ReadHeaderLength(absl::string_view text, size_t most) {
  uint64_t length;
  if (absl::SimpleAtoi(text, &length) && length <= most) return length;
  return server::InvalidField(
      kHeaderLength,
      absl::StrCat("got \"", text.substr(0, kMaxShown), "\", expected 0 to ",
                   most, ", the bytes of the body"));
}

void Name(absl::string_view model, absl::string_view version,
          inference::ModelInferRequest* message) {
  message->set_model_name(std::string(model));
  message->set_model_version(std::string(version));
}

// Makes a request of a body that is a picture.
KserveRequest PictureRequest(absl::string_view model, absl::string_view version,
                             std::string body) {
  inference::ModelInferRequest message;
  Name(model, version, &message);
  auto* input = message.add_inputs();
  input->set_name(kserve::kInputName);
  input->set_datatype("BYTES");
  input->add_shape(1);
  std::string length;
  for (int i = 0; i < kLengthBytes; ++i) {
    length.push_back(static_cast<char>(body.size() >> 8 * i));
  }
  MessageWriter writer(message);
  const auto owner = std::make_shared<const std::string>(std::move(body));
  writer.AddRaw(owner, *owner, length);
  return {writer.Take(), OutputForms()};
}

absl::Status WrongTail(size_t got, absl::string_view expected) {
  return server::InvalidField(
      "inputs",
      absl::StrCat("got ", got, " bytes after the JSON, expected ", expected));
}

// Most bytes of a body: as many as gRPC's requests without pictures may have.
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

// Sets `*member` to the member `name` of the object that `body` is, null if it
// has none. INVALID_ARGUMENT if it is of another type.
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
absl::StatusOr<Request> Read(const std::string& model,
                             const std::string& body) {
  Request request;
  request.set_model_name(model);
  nlohmann::json parameters;
  absl::Status status = ReadMember(
      body, "parameters", nlohmann::json::value_t::object, &parameters);
  if (!status.ok()) return status;
  for (const auto& [key, value] : parameters.items()) {
    status = Set(key, value, &(*request.mutable_parameters())[key]);
    if (!status.ok()) return status;
  }
  return request;
}

}  // namespace

absl::StatusOr<KserveRequest> ReadKserveRequest(
    absl::string_view model, absl::string_view version,
    std::optional<absl::string_view> header_length, std::string body,
    int64_t max_raw_bytes, server::MemoryBudget* memory) {
  if (!header_length.has_value() && IsPicture(body)) header_length = "0";
  size_t json_bytes = body.size();
  if (header_length.has_value()) {
    const absl::StatusOr<size_t> length =
        ReadHeaderLength(*header_length, body.size());
    if (!length.ok()) return length.status();
    json_bytes = *length;
    if (json_bytes == 0) return PictureRequest(model, version, std::move(body));
  }
  // Parsing takes about as much memory as the JSON. It is held until the
  // prediction itself holds the message.
  const absl::StatusOr<server::MemoryHold> hold =
      memory->Take(server::MemoryUse::kMessage, json_bytes);
  if (!hold.ok()) return hold.status();
  absl::StatusOr<InferJson> json = ReadInferJson(
      absl::string_view(body).substr(0, json_bytes), max_raw_bytes);
  if (!json.ok()) return json.status();
  Name(model, version, &json->message);
  MessageWriter writer(json->message);
  const auto owner = std::make_shared<const std::string>(std::move(body));
  absl::string_view tail = absl::string_view(*owner).substr(json_bytes);
  for (InputData& input : json->inputs) {
    if (input.raw.has_value()) {
      const auto raw =
          std::make_shared<const std::string>(*std::move(input.raw));
      writer.AddRaw(raw, *raw);
    } else if (input.binary_bytes.has_value()) {
      const uint64_t bytes = *input.binary_bytes;
      if (bytes > tail.size()) {
        return WrongTail(tail.size(), absl::StrCat(bytes,
                                                   " or more as "
                                                   "binary_data_size says"));
      }
      writer.AddRaw(owner, tail.substr(0, bytes));
      tail.remove_prefix(bytes);
    }
  }
  if (!tail.empty()) {
    return WrongTail(tail.size(), "none beyond what binary_data_size says");
  }
  KserveRequest request;
  request.message = writer.Take();
  request.outputs = std::move(json->outputs);
  return request;
}

absl::StatusOr<inference::RepositoryIndexRequest> ReadIndexBody(
    const std::string& body) {
  nlohmann::json ready;
  const absl::Status status =
      ReadMember(body, "ready", nlohmann::json::value_t::boolean, &ready);
  if (!status.ok()) return status;
  inference::RepositoryIndexRequest request;
  request.set_ready(ready == true);
  return request;
}

absl::StatusOr<inference::RepositoryModelLoadRequest> ReadLoadBody(
    const std::string& model, const std::string& body) {
  return Read<inference::RepositoryModelLoadRequest>(model, body);
}

absl::StatusOr<inference::RepositoryModelUnloadRequest> ReadUnloadBody(
    const std::string& model, const std::string& body) {
  return Read<inference::RepositoryModelUnloadRequest>(model, body);
}

}  // namespace sfmamba::rest
