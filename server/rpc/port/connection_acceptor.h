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

// Accepts connections for gRPC on a separate thread. If there are too many
// connections, closes the connections that have been silent longest. A new
// client can therefore always connect.
//
// gRPC 1.51's own listener has no connection limit. That listener stops
// listening permanently as soon as the process runs out of descriptors.
class ConnectionAcceptor {
 public:
  struct Options {
    int max_connections;
    // A new connection is closed immediately if its descriptor number is
    // `max_descriptor` or higher. These numbers are reserved for other
    // descriptors of the process.
    int max_descriptor;
    // The maximum time for which sent bytes may remain unacknowledged. After
    // this time, the kernel closes the connection.
    absl::Duration user_timeout = absl::Seconds(20);
    // Called for each connection that is closed because there are too many
    // connections. Must not block.
    std::function<void()> refused = [] {};
  };

  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  // Passes new connections to `acceptor`, whose server must have started.
  ConnectionAcceptor(const Options& options, server::ListeningSockets sockets,
                     std::unique_ptr<Acceptor> acceptor);
  // Stops listening. Open connections stay open.
  ~ConnectionAcceptor();

 private:
  void Loop();  // The body of thread_. Calls the methods below.
  // Accepts one connection. Returns false if no connection is waiting or if the
  // process cannot accept one at the moment.
  bool Accept(int listener);
  // Closes at least one connection. Chooses the connections that have been
  // silent longest.
  void MakeRoom();

  const Options options_;
  server::ListeningSockets sockets_;
  const std::unique_ptr<Acceptor> acceptor_;
  const int stop_;  // An eventfd that signals the thread to exit.
  // The set of open connections. Used only by thread_.
  OpenConnections open_;
  // This member comes last because the thread uses the members above.
  std::thread thread_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_CONNECTION_ACCEPTOR_H_
