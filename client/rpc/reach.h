#ifndef SFMAMBA_CLIENT_RPC_REACH_H_
#define SFMAMBA_CLIENT_RPC_REACH_H_

#include <string>

#include "absl/status/status.h"

namespace sfmamba::client {

// How a client reaches its server. Error messages are built from it.
struct Reach {
  std::string server;  // The text that the user gave.
  bool tls = false;
  bool token = false;
};

// Replaces the message of `error` by a sentence that names the server. Code and
// details stay equal. This is done for errors of gRPC itself, of a server that
// drains or loads, and of a wrong token. Any other error is returned unchanged.
absl::Status Explain(const Reach& reach, const absl::Status& error);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_RPC_REACH_H_
