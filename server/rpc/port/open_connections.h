#ifndef SFMAMBA_SERVER_RPC_PORT_OPEN_CONNECTIONS_H_
#define SFMAMBA_SERVER_RPC_PORT_OPEN_CONNECTIONS_H_

#include <sys/types.h>

#include <vector>

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

  // Ends the `count` connections from which nothing has come for longest: their
  // owner reads their end and closes them. They are forgotten.
  void EndMostSilent(int count);

 private:
  struct Connection {
    int fd;
    ino_t inode;  // A new socket of the same number has another one.
  };

  static bool IsOpen(const Connection& connection);
  static void End(const Connection& connection);

  std::vector<Connection> connections_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_OPEN_CONNECTIONS_H_
