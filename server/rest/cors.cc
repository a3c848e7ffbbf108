#include "server/rest/cors.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "server/rest/call_headers.h"

namespace sfmamba::rest {
namespace {

constexpr char kMethods[] = "GET, HEAD, POST, PUT";
constexpr char kRequestHeaders[] =
    "Accept, Authorization, Content-Encoding, Content-Type, Grpc-Timeout, "
    "Inference-Header-Content-Length, Traceparent, Tracestate, "
    "X-Request-Timeout";
constexpr char kAnswerHeaders[] =
    "Inference-Header-Content-Length, Retry-After";
constexpr char kSeconds[] = "600";  // A browser may remember what it was told.

}  // namespace

std::vector<std::pair<std::string, std::string>> CorsHeaders(
    const std::vector<std::string>& allowed, const http::HttpRequest& request) {
  if (allowed.empty()) return {};
  const auto is_allowed = [&allowed](absl::string_view origin) {
    return std::find(allowed.begin(), allowed.end(), origin) != allowed.end();
  };
  const absl::string_view origin = Header(request, "origin");
  // Caches must not give one origin's answer to another.
  std::vector<std::pair<std::string, std::string>> headers = {
      {"Vary", "Origin"}};
  if (origin.empty() || !(is_allowed("*") || is_allowed(origin))) {
    return headers;
  }
  headers.emplace_back("Access-Control-Allow-Origin",
                       is_allowed("*") ? "*" : std::string(origin));
  headers.emplace_back("Access-Control-Expose-Headers", kAnswerHeaders);
  if (request.method == "OPTIONS") {
    headers.emplace_back("Access-Control-Allow-Methods", kMethods);
    headers.emplace_back("Access-Control-Allow-Headers", kRequestHeaders);
    headers.emplace_back("Access-Control-Max-Age", kSeconds);
  }
  return headers;
}

}  // namespace sfmamba::rest
