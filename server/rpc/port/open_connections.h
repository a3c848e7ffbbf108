#ifndef SFMAMBA_SERVER_RPC_PORT_OPEN_CONNECTIONS_H_
#define SFMAMBA_SERVER_RPC_PORT_OPEN_CONNECTIONS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/rpc/port/channelz.h"
#include "server/rpc/port/receive_guard.h"

namespace sfmamba::rpc {

// TCP connections whose descriptors belong to someone who closes them without
// saying so. Thread-compatible.
class OpenConnections {
 public:
  // `fd` is a connected socket.
  void Add(int fd);

  // How many are open or were when Count() was called.
  int size() const { return static_cast<int>(connections_.size()); }
  // Forgets those that were closed. Returns how many are left.
  int Count();

  // Resets the connection from `peer`, "ipv4:1.2.3.4:56" or
  // "ipv6:%5B::1%5D:56" as gRPC writes it. Nothing happens if there is none.
  void End(const std::string& peer);

  // What each has received, and its open calls as they were counted last; those
  // that `guard` has not counted wait for their messages.
  std::vector<ReceiveGuard::Traffic> MeasureTraffic(const ReceiveGuard& guard);

  // Ends the `count` connections from which nothing has come for longest: their
  // owner reads their end and closes them. They are forgotten.
  void EndMostSilent(int count);

 private:
  struct Connection {
    int fd;
    ino_t inode;  // A new socket of the same number has another one.
    std::string peer;
    int64_t received = 0;
    int64_t calls = 0;   // Those open when they were counted last.
    int64_t failed = 0;  // Calls that ended unanswered, at that count.
    int64_t received_at_count = 0;
    int64_t id = 0;  // Channelz's; 0: not known yet.
  };

  // Counts the calls of some of those connections whose calls may have changed,
  // in turns, so that each look takes a part of a millisecond.
  void CountCalls();

  static bool IsOpen(const Connection& connection);
  static void End(Connection* connection);
  void Forget();  // Those that were ended.

  std::vector<Connection> connections_;
  Channelz channelz_{absl::Seconds(1)};
  size_t next_count_ = 0;  // Index of the connection that is counted next.
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_OPEN_CONNECTIONS_H_
