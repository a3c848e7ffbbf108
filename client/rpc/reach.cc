#include "client/rpc/reach.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/rpc/rpc_status.h"
#include "client/rpc/server_address.h"

namespace sfmamba::client {
namespace {

absl::Status WithMessage(const absl::Status& error, absl::string_view message) {
  absl::Status explained(error.code(), message);
  error.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    explained.SetPayload(url, payload);
  });
  return explained;
}

// Returns a sentence that explains `text`, which is gRPC's message for a call
// that has not reached the server. It knows the messages of gRPC 1.48 to 1.85.
std::string Unreachable(const Reach& reach, absl::string_view text) {
  const std::string server = absl::StrCat("the server at ", reach.server);
  const std::pair<const char*, std::string> sentences[] = {
      {"connection refused", absl::StrCat("nothing listens at ", reach.server)},
      {"name not found",
       absl::StrCat("the host of ", reach.server, " is unknown")},
      {"name resolution",
       absl::StrCat("the host of ", reach.server, " is unknown")},
      {"dns resolution",
       absl::StrCat("the host of ", reach.server, " is unknown")},
      {"backend unhealthy",
       absl::StrCat(server, " does not serve: it loads, drains or has failed")},
      {"http1.x",
       absl::StrCat(server, " speaks HTTP/1: is this its REST port?")},
      {"wrong version number",
       absl::StrCat(server, " does not speak TLS: leave out --tls")},
      {"wrong_version_number",
       absl::StrCat(server, " does not speak TLS: leave out --tls")},
      {"certificate verify failed",
       absl::StrCat("nothing that the client trusts has signed the certificate "
                    "of ",
                    server, ": --tls_ca")},
      {"certificate_verify_failed",
       absl::StrCat("nothing that the client trusts has signed the certificate "
                    "of ",
                    server, ": --tls_ca")},
      {"hostname verification",
       absl::StrCat("the certificate of ", server,
                    " is for another name: --tls_server_name")},
      {"peer name", absl::StrCat("the certificate of ", server,
                                 " is for another name: --tls_server_name")},
  };
  const std::string lower = absl::AsciiStrToLower(text);
  for (const auto& [part, sentence] : sentences) {
    if (absl::StrContains(lower, part)) return sentence;
  }
  const bool connecting = absl::StrContains(lower, "last error");
  if (absl::StrContains(lower, "socket closed") ||
      absl::StrContains(lower, "connection reset")) {
    if (!connecting) return absl::StrCat(server, " has ended the connection");
    return absl::StrCat(
        server, " closes connections: does it expect ",
        reach.tls ? "a certificate of the client? --tls_cert" : "TLS? --tls");
  }
  return connecting ? absl::StrCat(server, " cannot be reached: ", text)
                    : std::string(text);
}

// Returns text that names the proxy of calls to `server`, or "" if there is
// none.
std::string ThroughProxy(const std::string& server) {
  const std::string proxy = ProxyOf(server);
  return proxy.empty()
             ? ""
             : absl::StrCat(" (asked through the HTTP proxy ", proxy, ")");
}

}  // namespace

absl::Status Explain(const Reach& reach, const absl::Status& error) {
  if (error.ok()) return error;
  const std::string server = absl::StrCat("the server at ", reach.server);
  const RpcErrorDetails details = GetRpcErrorDetails(error);
  if (details.reason == "DRAINING") {
    return WithMessage(error, absl::StrCat(server, " is draining"));
  }
  if (IsLoading(details)) {
    return WithMessage(error,
                       absl::StrCat(server, " is loading: ", error.message()));
  }
  if (details.reason == "TOKEN_INVALID") {
    return WithMessage(
        error, reach.token
                   ? absl::StrCat(server,
                                  " does not accept the token: it is "
                                  "unknown or has expired")
                   : absl::StrCat(server, " expects a token: --token_file"));
  }
  if (!details.reason.empty()) return error;
  if (absl::IsUnavailable(error)) {
    return WithMessage(error, absl::StrCat(Unreachable(reach, error.message()),
                                           ThroughProxy(reach.server)));
  }
  if (absl::IsDeadlineExceeded(error) &&
      error.message() == "Deadline Exceeded") {
    return WithMessage(error, absl::StrCat(server, " has not answered in time",
                                           ThroughProxy(reach.server)));
  }
  return error;
}

}  // namespace sfmamba::client
