#include "server/tracing/endpoint.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "curl/curl.h"

namespace sfmamba::tracing {
namespace {

using Url = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

// A part of the URL; empty if it has none.
std::string Part(const Url& url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, 0) != CURLUE_OK) return "";
  std::string result(text);
  curl_free(text);
  return result;
}

}  // namespace

absl::StatusOr<std::string> TracesUrl(absl::string_view endpoint) {
  const Url url(curl_url(), &curl_url_cleanup);
  const bool is_url =
      curl_url_set(url.get(), CURLUPART_URL, std::string(endpoint).c_str(),
                   0) == CURLUE_OK;
  const std::string scheme = Part(url, CURLUPART_SCHEME);
  if (!is_url || (scheme != "http" && scheme != "https")) {
    return absl::InvalidArgumentError(
        absl::StrCat("trace_endpoint: got \"", endpoint,
                     "\", expected a URL that begins with http:// or "
                     "https://"));
  }
  if (!Part(url, CURLUPART_USER).empty() ||
      !Part(url, CURLUPART_PASSWORD).empty()) {
    return absl::InvalidArgumentError(
        "trace_endpoint: got a URL with a user, expected one without");
  }
  if (Part(url, CURLUPART_PATH) == "/") {
    curl_url_set(url.get(), CURLUPART_PATH, "/v1/traces", 0);
  }
  return Part(url, CURLUPART_URL);
}

}  // namespace sfmamba::tracing
