#include "server/rest/kserve/control_body.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/errors/reasons.h"

namespace sfmamba::rest {
namespace {

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
