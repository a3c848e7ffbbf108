#ifndef SFMAMBA_SERVER_RPC_PORT_OPEN_CONNECTIONS_H_
#define SFMAMBA_SERVER_RPC_PORT_OPEN_CONNECTIONS_H_

#include <sys/types.h>

#include <vector>

namespace sfmamba::rpc {

// Tracks TCP connections whose descriptors belong to another component, such as
// gRPC. The other component does not report when it closes a descriptor.
// Thread-compatible.
class OpenConnections {
 public:
  // Adds a connection. `fd` must be a connected socket.
  void Add(int fd);

  // Returns the number of tracked connections. This number may include
  // connections that were closed after the last call of Count().
  int size() const { return static_cast<int>(connections_.size()); }
  // Removes closed connections and returns the number of open connections.
  int Count();

  // Shuts down the `count` connections that have been silent longest, and stops
  // tracking them. The owner of each descriptor sees the end of the connection
  // and closes the descriptor.
  void EndMostSilent(int count);

 private:
  struct Connection {
    int fd;
    // The inode of the socket. If a new socket reuses `fd`, it has a different
    // inode.
    ino_t inode;
  };

  static bool IsOpen(const Connection& connection);
  static void End(const Connection& connection);

  std::vector<Connection> connections_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_OPEN_CONNECTIONS_H_
