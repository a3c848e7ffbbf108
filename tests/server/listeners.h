#ifndef SFMAMBA_TESTS_SERVER_LISTENERS_H_
#define SFMAMBA_TESTS_SERVER_LISTENERS_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>

namespace sfmamba::server {

// Ends the listening of this process's sockets, of one port or of all, behind
// the back of whoever accepts connections there.
inline void ShutListeners(std::optional<int> port = std::nullopt) {
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in address = {};
    socklen_t size = sizeof(address);
    int listens = 0;
    socklen_t flag = sizeof(listens);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
        ntohs(address.sin_port) == port.value_or(ntohs(address.sin_port)) &&
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &flag) == 0 &&
        listens != 0) {
      shutdown(fd, SHUT_RDWR);
    }
  }
}

}  // namespace sfmamba::server

#endif  // SFMAMBA_TESTS_SERVER_LISTENERS_H_
