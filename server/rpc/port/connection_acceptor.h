#ifndef SFMAMBA_SERVER_RPC_PORT_CONNECTION_ACCEPTOR_H_
#define SFMAMBA_SERVER_RPC_PORT_CONNECTION_ACCEPTOR_H_

#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "grpcpp/server_builder.h"
#include "server/host/listening_sockets.h"
#include "server/rpc/port/open_connections.h"
#include "server/rpc/port/receive_guard.h"

namespace sfmamba::rpc {

// Accepts gRPC's connections, on a thread of its own. When there are too many,
// those from which nothing has come for longest are ended, so that a new client
// is always heard. Connections from an address that ReadPauses bans wait until
// it does no more, and then become gRPC's one by one.
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
    // Most calls that a connection begins in a second and that are not
    // answered, if it sends without pause: ReadPauses.
    int most_unanswered = 512;
    // Calls of one address that may wait for their messages: see FrameWatch.
    int most_waiting = 1024;
    // Bytes that the headers of one call may count: see FrameWatch.
    int64_t most_headers = 128 << 10;
    // How long sent bytes may stay unacknowledged before the connection ends.
    absl::Duration user_timeout = absl::Seconds(20);
    // Not null; outlives this. Chooses connections to end by what they hold.
    ReceiveGuard* receives = nullptr;
    // Called for each connection that is ended because there are too many or by
    // `receives`. Must not block.
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
  // Most milliseconds to wait for the next event.
  int TimeToNextCheck() const;
  void CheckReceives();
  // Makes room for one more connection.
  void MakeRoom();
  // Drops those of waiting_ whose clients have gone and gives gRPC the one that
  // has sent least of those whose addresses are not banned any more.
  void EndWait();
  void HandOver(int listener, int fd);

  const Options options_;
  server::ListeningSockets sockets_;
  const std::unique_ptr<Acceptor> acceptor_;
  const int stop_;  // An eventfd, readable once the thread is to end.
  // Used by thread_ only.
  OpenConnections open_;
  // When options_.receives is checked next.
  absl::Time next_check_ = absl::InfinitePast();
  // Accepted connections of addresses that are banned, by listener and
  // descriptor.
  std::vector<std::pair<int, int>> waiting_;
  absl::Time next_wait_end_ = absl::InfinitePast();
  std::thread thread_;  // Last: uses everything above.
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_CONNECTION_ACCEPTOR_H_
