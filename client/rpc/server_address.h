#ifndef SFMAMBA_CLIENT_RPC_SERVER_ADDRESS_H_
#define SFMAMBA_CLIENT_RPC_SERVER_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sfmamba::client {

// A server is "host:port", or a target of gRPC's that begins with "ipv4:" or
// "ipv6:" (a list of addresses) or "dns://".

// Returns INVALID_ARGUMENT for a server that no call could reach: gRPC would
// look for a host of this name, or for port 443.
absl::Status CheckServer(absl::string_view server);

// gRPC's target for the server: "host:port" is a name to be looked up.
std::string TargetOf(absl::string_view server);

// Whether everything sent to `server` stays on this machine. No name but
// localhost is looked up. Every address of a list must stay here.
bool IsLoopback(absl::string_view server);

// The HTTP proxy through which gRPC reaches `server`, without its password.
// Empty if there is none.
std::string ProxyOf(absl::string_view server);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_RPC_SERVER_ADDRESS_H_
