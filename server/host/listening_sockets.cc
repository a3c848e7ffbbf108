#include "server/host/listening_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace sfmamba::server {
namespace {

constexpr int kBacklog = 1024;

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

std::string WithoutBrackets(absl::string_view host) {
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return std::string(host);
}

Addresses Resolve(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(WithoutBrackets(host).c_str(), "0", &hints, &found) != 0) {
    found = nullptr;
  }
  return Addresses(found, freeaddrinfo);
}

// Returns false if the kernel was built or started without IPv6.
bool HasIpv6() {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

int PortOf(int fd) {
  sockaddr_in6 address = {};
  socklen_t size = sizeof(address);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  // The port is at the same offset in IPv4 and IPv6 addresses.
  return ntohs(address.sin6_port);
}

// Returns a socket that listens at `address` and `port`, or -1 with errno set.
// The socket does not use SO_REUSEPORT. With SO_REUSEPORT, a second server
// could listen on the same port and would silently take half of the
// connections.
int Listen(const addrinfo& address, int port) {
  const int fd =
      socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int yes = 1, no = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (address.ai_family == AF_INET6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  }
  // The port is at the same offset in IPv4 and IPv6 addresses.
  reinterpret_cast<sockaddr_in*>(address.ai_addr)->sin_port = htons(port);
  if (bind(fd, address.ai_addr, address.ai_addrlen) == 0 &&
      listen(fd, kBacklog) == 0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

}  // namespace

absl::StatusOr<ListeningSockets> ListeningSockets::Bind(const std::string& what,
                                                        const std::string& host,
                                                        int port) {
  if (host == "*") return Bind(what, HasIpv6() ? "::" : "0.0.0.0", port);
  ListeningSockets sockets;
  sockets.port_ = port;
  int error = 0;
  const Addresses addresses = Resolve(host);
  for (addrinfo* next = addresses.get(); next != nullptr;
       next = next->ai_next) {
    const int fd = Listen(*next, sockets.port_);
    if (fd >= 0) {
      sockets.fds_.push_back(fd);
      sockets.port_ = PortOf(fd);
    } else if (error != EADDRINUSE) {
      error = errno;
    }
  }
  // Succeeds if at least one address was bound and no address failed because
  // its port is in use. Other errors are ignored, because a host name may have
  // addresses that do not exist on this machine, such as ::1.
  if (!sockets.fds_.empty() && error != EADDRINUSE) return sockets;
  return absl::UnavailableError(absl::StrCat(
      "cannot bind ", what, ": ", host, ":", port, ": ",
      error == 0 ? "not an address of this machine" : std::strerror(error)));
}

ListeningSockets::ListeningSockets(ListeningSockets&& other)
    : fds_(std::exchange(other.fds_, {})), port_(other.port_) {}

ListeningSockets& ListeningSockets::operator=(ListeningSockets&& other) {
  Close();
  fds_ = std::exchange(other.fds_, {});
  port_ = other.port_;
  return *this;
}

void ListeningSockets::Close() {
  for (int fd : fds_) close(fd);
  fds_.clear();
}

}  // namespace sfmamba::server
