#include "server/tracing/endpoint.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace sfmamba::tracing {
namespace {

constexpr int kHttpPort = 4318;  // The default port of OTLP over HTTP.

// Splits HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT. Sets `port` to 0 if
// `text` has no port. Returns false if the port is not between 1 and 65535.
bool SplitHostAndPort(absl::string_view text, absl::string_view* host,
                      int* port) {
  const size_t bracket = text.rfind(']');
  const size_t colon =
      text.find(':', bracket == absl::string_view::npos ? 0 : bracket);
  *host = text.substr(0, colon);
  *port = 0;
  if (colon == absl::string_view::npos) return true;
  return absl::SimpleAtoi(text.substr(colon + 1), port) && *port > 0 &&
         *port <= 65535;
}

bool IsHost(absl::string_view host) {
  const bool is_address =
      absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  for (const char c : host) {
    if (is_address
            ? !absl::ascii_isxdigit(c) && c != ':' && c != '.'
            : !absl::ascii_isalnum(c) && c != '-' && c != '.' && c != '_') {
      return false;
    }
  }
  return !host.empty();
}

}  // namespace

absl::Status CheckEndpoint(absl::string_view endpoint) {
  // This is checked first, because the other errors show the URL.
  if (absl::StrContains(endpoint, '@')) {
    return absl::InvalidArgumentError(
        "trace_endpoint: got a URL with a user, expected one without");
  }
  absl::string_view rest = endpoint;
  if (!absl::ConsumePrefix(&rest, "http://") &&
      !absl::ConsumePrefix(&rest, "https://")) {
    return absl::InvalidArgumentError(
        absl::StrCat("trace_endpoint: got \"", endpoint,
                     "\", expected a URL that begins with http:// or "
                     "https://"));
  }
  absl::ConsumeSuffix(&rest, "/");
  absl::string_view host;
  int port = 0;
  if (absl::StrContains(rest, '/') ||
      (SplitHostAndPort(rest, &host, &port) && port == kHttpPort)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "trace_endpoint: got \"", endpoint,
        "\", OTLP over HTTP, expected a collector of OTLP over gRPC, such as "
        "http://HOST:4317"));
  }
  if (!SplitHostAndPort(rest, &host, &port) || !IsHost(host)) {
    return absl::InvalidArgumentError(
        absl::StrCat("trace_endpoint: got \"", endpoint,
                     "\", expected http://HOST:PORT or https://HOST:PORT"));
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::tracing
