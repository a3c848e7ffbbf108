#ifndef SFMAMBA_CLIENT_RPC_SERVER_ADDRESS_H_
#define SFMAMBA_CLIENT_RPC_SERVER_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sfmamba::client {

// A server is written as "host:port" or as a target of gRPC. A target begins
// with "ipv4:" or "ipv6:" (a list of addresses) or with "dns://".

// Returns INVALID_ARGUMENT unless `server` has one of the two forms. Only the
// beginning of a target is checked. Without this function, gRPC would look up a
// malformed `server`, such as a URL, as the name of a host. If the port were
// missing, gRPC would use port 443.
absl::Status CheckServer(absl::string_view server);

// Returns gRPC's target for `server`. For "host:port", gRPC looks up the host's
// name.
std::string TargetOf(absl::string_view server);

// Returns true if everything sent to `server` stays on this machine. In a list,
// every address must be local. The only name that counts as local is localhost.
bool IsLoopback(absl::string_view server);

// Returns the HTTP proxy through which gRPC reaches `server`, without its
// password. Returns "" if gRPC uses no proxy.
std::string ProxyOf(absl::string_view server);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_RPC_SERVER_ADDRESS_H_
