#ifndef SFMAMBA_SERVER_HOST_LISTENING_SOCKETS_H_
#define SFMAMBA_SERVER_HOST_LISTENING_SOCKETS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace sfmamba::server {

// TCP sockets that listen at one port, one for each address of a host. They do
// not block, and are closed by the destructor. Thread-compatible.
class ListeningSockets {
 public:
  // `host`: a name or an address; an IPv6 address may have brackets, "::" takes
  // IPv4 too, and "*" is any address. Port 0: any free one. `what` names the
  // port in errors.
  // UNAVAILABLE, naming host and port, if none can be bound or if the port is
  // in use.
  static absl::StatusOr<ListeningSockets> Bind(const std::string& what,
                                               const std::string& host,
                                               int port);
  ~ListeningSockets() { Close(); }
  ListeningSockets(ListeningSockets&& other);
  ListeningSockets& operator=(ListeningSockets&& other);

  const std::vector<int>& fds() const { return fds_; }
  int port() const { return port_; }
  // Closes the sockets; connections that are not accepted yet are reset.
  void Close();

 private:
  ListeningSockets() = default;

  std::vector<int> fds_;
  int port_ = 0;
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_HOST_LISTENING_SOCKETS_H_
