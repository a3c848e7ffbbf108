#ifndef SFMAMBA_SERVER_RPC_PORT_CONNECTION_ACCEPTOR_H_
#define SFMAMBA_SERVER_RPC_PORT_CONNECTION_ACCEPTOR_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/time/time.h"
#include "grpcpp/server_builder.h"
#include "server/host/listening_sockets.h"
#include "server/rpc/port/open_connections.h"

namespace sfmamba::rpc {

// Accepts gRPC's connections, on a thread of its own. When there are too many,
// those from which nothing has come for longest are ended, so that a new client
// is always heard.
//
// gRPC 1.51's own listener accepts any number, and for ever stops listening at
// the first connection for which the process has no descriptor.
class ConnectionAcceptor {
 public:
  struct Options {
    int max_connections;
    // A connection whose descriptor has this number or a higher one is closed
    // at once: the rest are for whatever else the process opens.
    int max_descriptor;
    // How long sent bytes may stay unacknowledged before the connection ends.
    absl::Duration user_timeout = absl::Seconds(20);
    // Called for each connection that is ended because there are too many.
    // Must not block.
    std::function<void()> refused = [] {};
  };

  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  // Connections are given to `acceptor`, of a server that has started.
  ConnectionAcceptor(const Options& options, server::ListeningSockets sockets,
                     std::unique_ptr<Acceptor> acceptor);
  // Stops listening. Connections stay.
  ~ConnectionAcceptor();

 private:
  void Loop();  // The body of thread_, which alone calls what follows.
  // False if there was none, for now.
  bool Accept(int listener);
  // Makes room for one more connection.
  void MakeRoom();

  const Options options_;
  server::ListeningSockets sockets_;
  const std::unique_ptr<Acceptor> acceptor_;
  const int stop_;        // An eventfd, readable once the thread is to end.
  OpenConnections open_;  // Used by thread_ only.
  std::thread thread_;    // Last: uses everything above.
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_CONNECTION_ACCEPTOR_H_
