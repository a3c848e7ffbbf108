#include "tests/server/http/raw_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sfmamba::http {

ssize_t RawClient::Read(char* bytes, size_t size) {
  return recv(fd(), bytes, size, 0);
}

int64_t RawClient::SendWhileItIsRead(int64_t bytes) {
  constexpr int kMilliseconds = 200;
  const std::string block(1 << 20, 'x');
  pollfd room = {fd(), POLLOUT, 0};
  int64_t sent = 0;
  while (sent < bytes && poll(&room, 1, kMilliseconds) > 0) {
    const ssize_t size =
        send(fd(), block.data(), block.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size < 0) break;
    sent += size;
  }
  return sent;
}

void RawClient::Reset() {
  const linger now = {1, 0};
  setsockopt(fd(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  const int nothing = socket(AF_INET, SOCK_STREAM, 0);
  // Closes the connection and keeps the descriptor's number in use.
  dup2(nothing, fd());
  close(nothing);
}

}  // namespace sfmamba::http
