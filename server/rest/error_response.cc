#include "server/rest/error_response.h"

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/json.h"
#include "google/rpc/status.pb.h"
#include "server/errors/error.h"
#include "server/rest/response_body.h"

namespace sfmamba::rest {
namespace {

// The maximum number of bytes of a rejected HTTP method in an error message.
constexpr size_t kMaxShown = 32;

// Maps canonical codes to HTTP statuses and back. If several rows match, the
// first row is used. Codes have the statuses that the documentation of
// google.rpc.Code lists. The last three rows are used only to map statuses to
// codes.
constexpr struct {
  absl::StatusCode code;
  int http;
} kCodes[] = {{absl::StatusCode::kOk, 200},
              {absl::StatusCode::kInvalidArgument, 400},
              {absl::StatusCode::kFailedPrecondition, 400},
              {absl::StatusCode::kOutOfRange, 400},
              {absl::StatusCode::kUnauthenticated, 401},
              {absl::StatusCode::kPermissionDenied, 403},
              {absl::StatusCode::kNotFound, 404},
              {absl::StatusCode::kAborted, 409},
              {absl::StatusCode::kAlreadyExists, 409},
              {absl::StatusCode::kResourceExhausted, 429},
              {absl::StatusCode::kCancelled, 499},
              {absl::StatusCode::kInternal, 500},
              {absl::StatusCode::kUnimplemented, 501},
              {absl::StatusCode::kUnavailable, 503},
              {absl::StatusCode::kDeadlineExceeded, 504},
              {absl::StatusCode::kUnimplemented, 405},
              {absl::StatusCode::kDeadlineExceeded, 408},
              {absl::StatusCode::kUnimplemented, 505}};

int HttpCode(absl::StatusCode code) {
  for (const auto& row : kCodes) {
    if (row.code == code) return row.http;
  }
  // Codes without a row, such as UNKNOWN and DATA_LOSS, become 500.
  return 500;
}

absl::StatusCode CanonicalCode(int http_code) {
  for (const auto& row : kCodes) {
    if (row.http == http_code) return row.code;
  }
  return http_code < 500 ? absl::StatusCode::kInvalidArgument
                         : absl::StatusCode::kInternal;
}

// Returns the message of an error. If `field` is not empty, the returned
// message starts with `field`, which replaces the error's own field name.
std::string Worded(const absl::Status& error, absl::string_view field) {
  if (field.empty()) return std::string(error.message());
  absl::string_view message = error.message();
  absl::ConsumePrefix(&message,
                      absl::StrCat(server::GetErrorDetail(error).field, ": "));
  return absl::StrCat(field, ": ", message);
}

std::string JsonOf(const absl::Status& error) {
  google::rpc::Status proto = server::ToRpcStatus(error);
  proto.set_message(Worded(error, server::GetErrorDetail(error).field));
  return ToJson(proto);
}

http::HttpResponse WithBody(int http_code, const absl::Status& error,
                            std::string json) {
  http::HttpResponse response;
  response.status = http_code;
  response.headers.emplace_back("Content-Type", "application/json");
  absl::Duration wait = server::GetErrorDetail(error).retry_after;
  if (wait == absl::InfiniteDuration() && absl::IsUnavailable(error)) {
    wait = absl::Seconds(1);
  }
  if (wait != absl::InfiniteDuration()) {
    response.headers.emplace_back(
        "Retry-After",
        absl::StrCat(absl::ToInt64Seconds(absl::Ceil(wait, absl::Seconds(1)))));
  }
  response.body.push_back(std::move(json));
  return response;
}

}  // namespace

http::HttpResponse ErrorResponse(const absl::Status& error) {
  return WithBody(HttpCode(error.code()), error, JsonOf(error));
}

http::HttpResponse KserveError(const absl::Status& error) {
  std::string field = server::GetErrorDetail(error).field;
  // In gRPC, the elements of an input are in one of two fields. In JSON, they
  // are always in `data`.
  if (field == "raw_input_contents[0]" || field == "inputs[0].contents") {
    field = "inputs[0].data";
  }
  return WithBody(
      HttpCode(error.code()), error,
      absl::StrCat("{\"error\":", base::JsonString(Worded(error, field)), "}"));
}

http::HttpResponse ErrorAt(absl::string_view path, const absl::Status& error) {
  return IsUnder(path, "/v2") ? KserveError(error) : ErrorResponse(error);
}

http::HttpResponse RefusalResponse(int http_code, absl::string_view message,
                                   absl::string_view path) {
  http::HttpResponse response =
      ErrorAt(path, absl::Status(CanonicalCode(http_code), message));
  response.status = http_code;
  return response;
}

http::HttpResponse OtherMethod(absl::string_view method,
                               absl::string_view allowed,
                               absl::string_view path) {
  http::HttpResponse response;
  if (method == "OPTIONS") {
    response.status = 204;
  } else {
    response = RefusalResponse(
        405,
        absl::StrCat("got the method ",
                     absl::CHexEscape(method.substr(0, kMaxShown)),
                     ", expected ", allowed),
        path);
  }
  response.headers.emplace_back("Allow", std::string(allowed));
  return response;
}

bool IsUnder(absl::string_view path, absl::string_view folder) {
  return absl::StartsWith(path, folder) &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace sfmamba::rest
