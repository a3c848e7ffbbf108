#include "server/host/peer_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"

namespace sfmamba::server {

std::string PeerName(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  char host[INET6_ADDRSTRLEN] = "";
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return "";
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  // The port is at the same offset in both address types.
  const int port = ntohs(v4.sin_port);
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
    return absl::StrCat("ipv4:", host, ":", port);
  }
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], host, sizeof(host));
    return absl::StrCat("ipv4:", host, ":", port);
  }
  inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
  return absl::StrCat("ipv6:%5B", host, "%5D:", port);
}

}  // namespace sfmamba::server
