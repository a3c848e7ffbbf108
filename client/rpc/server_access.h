#ifndef SFMAMBA_CLIENT_RPC_SERVER_ACCESS_H_
#define SFMAMBA_CLIENT_RPC_SERVER_ACCESS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/channel_arguments.h"

namespace sfmamba::client {

// How a client authenticates itself and its server.
struct ServerAccess {
  bool tls = false;
  // The three texts below are in PEM. If `roots` is empty, the system's roots
  // are trusted. If `certificate` and `private_key` are empty, the client sends
  // no certificate.
  std::string roots;
  std::string certificate;
  std::string private_key;
  // The name in the server's certificate. If it is empty, the certificate must
  // have the name of the server's host.
  std::string server_name;
  std::string token;  // Sent with each call. Empty: none.
};

// ServerAccess as given by flags, which contain paths of files.
struct AccessOptions {
  bool tls = false;
  std::string ca_file;
  std::string cert_file;
  std::string key_file;
  std::string server_name;
  // If `token_file` is not empty, the token is read from it, and `token` is
  // ignored.
  std::string token_file;
  std::string token;
  // Allows sending the token without TLS. Others on the network can then read
  // the token.
  bool plaintext_token = false;
};

// Reads the files of `options`. Returns INVALID_ARGUMENT if CheckServer()
// rejects `server`, or if a file cannot be read or does not fit, such as the
// key of another certificate. Also returns INVALID_ARGUMENT if a token would be
// sent to another machine without TLS, unless `options` allow this.
absl::StatusOr<ServerAccess> OpenAccess(absl::string_view server,
                                        const AccessOptions& options);

// Returns a channel to `server` that uses `access` in addition to `arguments`.
// Calls that stay on this machine use no proxy.
std::shared_ptr<grpc::Channel> MakeChannel(absl::string_view server,
                                           const ServerAccess& access,
                                           grpc::ChannelArguments arguments);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_RPC_SERVER_ACCESS_H_
