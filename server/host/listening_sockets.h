#ifndef SFMAMBA_SERVER_HOST_LISTENING_SOCKETS_H_
#define SFMAMBA_SERVER_HOST_LISTENING_SOCKETS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace sfmamba::server {

// TCP sockets that listen on one port, one socket for each address of a host.
// The sockets are non-blocking. The destructor closes them. Thread-compatible.
class ListeningSockets {
 public:
  // `host` is a name or an address. An IPv6 address may have brackets. Two
  // values select all addresses of the machine:
  // - "::" listens on all IPv6 and IPv4 addresses. If the kernel does not
  //   support IPv6, Bind() fails.
  // - "*" does the same as "::" if the kernel supports IPv6. Otherwise it
  //   listens on all IPv4 addresses.
  //
  // Port 0 selects a free port. `what` names the port in error messages.
  // Returns UNAVAILABLE if no address can be bound or if the port is in use.
  // The error message contains `host` and `port`.
  static absl::StatusOr<ListeningSockets> Bind(const std::string& what,
                                               const std::string& host,
                                               int port);
  ~ListeningSockets() { Close(); }
  ListeningSockets(ListeningSockets&& other);
  ListeningSockets& operator=(ListeningSockets&& other);

  const std::vector<int>& fds() const { return fds_; }
  int port() const { return port_; }
  // Closes the sockets. Connections that are not accepted yet are reset.
  void Close();

 private:
  ListeningSockets() = default;

  std::vector<int> fds_;
  int port_ = 0;
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_HOST_LISTENING_SOCKETS_H_
