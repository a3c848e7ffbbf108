#ifndef SFMAMBA_CLIENT_RPC_REACH_H_
#define SFMAMBA_CLIENT_RPC_REACH_H_

#include <string>

#include "absl/status/status.h"

namespace sfmamba::client {

// How a client reaches its server, for errors that name it.
struct Reach {
  std::string server;  // The user's text.
  bool tls = false;
  bool token = false;
};

// The error as a sentence that names the server, with the same code and
// details: errors of gRPC's own, of a server that drains or loads, and of a
// token. All others are returned as they are.
absl::Status Explain(const Reach& reach, const absl::Status& error);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_RPC_REACH_H_
