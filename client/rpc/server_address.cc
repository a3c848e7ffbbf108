#include "client/rpc/server_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace sfmamba::client {
namespace {

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("--server: ", what));
}

// Returns true if gRPC accepts `server` unchanged.
bool IsTarget(absl::string_view server) {
  return absl::StartsWith(server, "ipv4:") ||
         absl::StartsWith(server, "ipv6:") ||
         absl::StartsWith(server, "dns://");
}

// Returns the host of "host:port" or "[host]:port".
std::string HostOf(absl::string_view address) {
  absl::string_view host = address.substr(0, address.rfind(':'));
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return absl::AsciiStrToLower(host);
}

bool IsLoopbackHost(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return (ntohl(v4.s_addr) >> 24) == 127;
  }
  in6_addr v6;
  if (inet_pton(AF_INET6, host.c_str(), &v6) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&v6) ||
         (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

// Returns the value of the first environment variable that is set. gRPC chooses
// in the same way.
std::string FirstSet(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* const value = std::getenv(name);
    if (value != nullptr) return value;
  }
  return "";
}

}  // namespace

absl::Status CheckServer(absl::string_view server) {
  if (IsTarget(server)) return absl::OkStatus();
  const size_t scheme = server.find("://");
  if (scheme != absl::string_view::npos) {
    const absl::string_view name = server.substr(0, scheme);
    return Wrong(absl::StrCat("got '", server, "', expected HOST:PORT without ",
                              name, "://",
                              name == "https" ? ", and --tls" : ""));
  }
  const size_t colon = server.rfind(':');
  const absl::string_view host = server.substr(0, colon);
  const bool is_host = !host.empty() && !absl::StrContains(host, '/') &&
                       (!absl::StrContains(host, ':') ||
                        (host.front() == '[' && host.back() == ']'));
  int port = 0;
  if (colon != absl::string_view::npos && is_host &&
      absl::SimpleAtoi(server.substr(colon + 1), &port) && port > 0 &&
      port < 65536) {
    return absl::OkStatus();
  }
  return Wrong(absl::StrCat("got '", server,
                            "', expected HOST:PORT, such as 127.0.0.1:8001"));
}

std::string TargetOf(absl::string_view server) {
  return IsTarget(server) ? std::string(server)
                          : absl::StrCat("dns:///", server);
}

bool IsLoopback(absl::string_view server) {
  for (const char* scheme : {"ipv4:", "ipv6:", "dns:///"}) {
    if (absl::ConsumePrefix(&server, scheme)) break;
  }
  for (const absl::string_view address : absl::StrSplit(server, ',')) {
    if (!IsLoopbackHost(HostOf(address))) return false;
  }
  return true;
}

std::string ProxyOf(absl::string_view server) {
  const std::string url = FirstSet({"grpc_proxy", "https_proxy", "http_proxy"});
  if (url.empty() || IsLoopback(server)) return "";
  const std::string host = HostOf(server);
  const std::string excepted = FirstSet({"no_grpc_proxy", "no_proxy"});
  for (const absl::string_view entry :
       absl::StrSplit(excepted, ',', absl::SkipWhitespace())) {
    if (absl::EndsWithIgnoreCase(host, absl::StripAsciiWhitespace(entry))) {
      return "";
    }
  }
  absl::string_view proxy = url;
  proxy.remove_prefix(proxy.rfind('@') + 1);  // Removes nothing without '@'.
  const size_t scheme = proxy.find("://");
  if (scheme != absl::string_view::npos) proxy.remove_prefix(scheme + 3);
  return std::string(proxy);
}

}  // namespace sfmamba::client
