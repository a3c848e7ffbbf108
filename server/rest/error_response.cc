#include "server/rest/error_response.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "google/protobuf/util/json_util.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/errors/error.h"
#include "server/rest/http_code.h"
#include "server/rpc/grpc_status.h"

namespace sfmamba::rest {
namespace {

constexpr size_t kMaxShown = 32;  // Most bytes shown of a refused method.

std::string ToJson(const absl::Status& error) {
  google::rpc::Status proto = rpc::ToRpcStatus(error);
  std::string json;
  if (google::protobuf::util::MessageToJsonString(proto, &json).ok()) {
    return json;
  }
  // JSON cannot be written for a detail whose type is not linked in.
  proto.clear_details();
  json.clear();
  (void)google::protobuf::util::MessageToJsonString(proto, &json);
  return json;
}

http::HttpResponse WithCode(int http_code, const absl::Status& error) {
  http::HttpResponse response;
  response.status = http_code;
  response.headers.emplace_back("Content-Type", "application/json");
  if (std::optional<std::string> seconds = RetryAfter(error)) {
    response.headers.emplace_back("Retry-After", *std::move(seconds));
  }
  response.body.push_back(ToJson(error));
  return response;
}

}  // namespace

std::optional<std::string> RetryAfter(const absl::Status& error) {
  const absl::Duration hint = server::GetErrorDetail(error).retry_after;
  if (hint != absl::InfiniteDuration()) {
    return absl::StrCat(
        absl::ToInt64Seconds(absl::Ceil(hint, absl::Seconds(1))));
  }
  if (absl::IsUnavailable(error)) return "1";
  return std::nullopt;
}

http::HttpResponse ErrorResponse(const absl::Status& error) {
  return WithCode(HttpCode(error.code()), error);
}

http::HttpResponse RefusalResponse(int http_code, absl::string_view message) {
  return WithCode(http_code, absl::Status(CanonicalCode(http_code), message));
}

http::HttpResponse OtherMethod(absl::string_view method,
                               absl::string_view allowed) {
  http::HttpResponse response;
  if (method == "OPTIONS") {
    response.status = 204;
  } else {
    response = RefusalResponse(
        405, absl::StrCat("got the method ",
                          absl::CHexEscape(method.substr(0, kMaxShown)),
                          ", expected ", allowed));
  }
  response.headers.emplace_back("Allow", std::string(allowed));
  return response;
}

}  // namespace sfmamba::rest
