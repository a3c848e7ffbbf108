#include "tests/server/http/raw_client.h"

#include <sys/socket.h>
#include <unistd.h>

namespace sfmamba::http {

ssize_t RawClient::Read(char* bytes, size_t size) {
  return recv(fd(), bytes, size, 0);
}

void RawClient::Reset() {
  const linger now = {1, 0};
  setsockopt(fd(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  const int nothing = socket(AF_INET, SOCK_STREAM, 0);
  dup2(nothing, fd());  // Closes the connection, not the descriptor.
  close(nothing);
}

}  // namespace sfmamba::http
