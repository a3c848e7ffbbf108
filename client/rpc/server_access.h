#ifndef SFMAMBA_CLIENT_RPC_SERVER_ACCESS_H_
#define SFMAMBA_CLIENT_RPC_SERVER_ACCESS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/channel_arguments.h"

namespace sfmamba::client {

// How a client reaches a server that is guarded.
struct ServerAccess {
  bool tls = false;
  // In PEM. Without roots those of the system are trusted; without certificate
  // and key the client shows none.
  std::string roots;
  std::string certificate;
  std::string private_key;
  // The name that the server's certificate is for; empty: the host.
  std::string server_name;
  std::string token;  // Sent with each call; empty: none.
};

// ServerAccess as flags name it: paths in place of contents.
struct AccessOptions {
  bool tls = false;
  std::string ca_file;
  std::string cert_file;
  std::string key_file;
  std::string server_name;
  // The first of them that is there: the file, then `token`.
  std::string token_file;
  std::string token;
  // Whether the token may be sent where others can read it.
  bool plaintext_token = false;
};

// Reads the files. INVALID_ARGUMENT for a `server` that CheckServer() refuses,
// names what cannot be read or does not fit, such as the key of another
// certificate, and refuses to send a token in plaintext to another machine
// unless `options` allow it.
absl::StatusOr<ServerAccess> OpenAccess(absl::string_view server,
                                        const AccessOptions& options);

// A channel to `server` that goes by `access`. `arguments` are added to. No
// proxy sees what stays on this machine.
std::shared_ptr<grpc::Channel> MakeChannel(absl::string_view server,
                                           const ServerAccess& access,
                                           grpc::ChannelArguments arguments);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_RPC_SERVER_ACCESS_H_
