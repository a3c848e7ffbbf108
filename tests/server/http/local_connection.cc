#include "tests/server/http/local_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::http {

LocalConnection::LocalConnection(int port, int receive_buffer, int from)
    : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (receive_buffer > 0) {
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer,
               sizeof(receive_buffer));
  }
  sockaddr_in own = {};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + from);
  EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof(own)), 0);
  EXPECT_EQ(
      connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
}

LocalConnection::~LocalConnection() { close(fd_); }

bool LocalConnection::SendRaw(const std::string& bytes) {
  TimeLimit limit("the server to read");
  return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

bool LocalConnection::ReadMore() {
  char bytes[16 << 10];
  const ssize_t n = Read(bytes, sizeof(bytes));
  if (n > 0) received_.append(bytes, n);
  return n > 0;
}

std::string LocalConnection::ReadAll() {
  TimeLimit limit("the end of the connection");
  while (ReadMore()) {
  }
  return std::exchange(received_, "");
}

std::string LocalConnection::ReadAnswer(bool has_body) {
  TimeLimit limit("an answer over HTTP");
  size_t end = 0;
  while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
    if (!ReadMore()) return std::exchange(received_, "");
  }
  end += 4;
  const std::string name = "\r\nContent-Length: ";
  const size_t header = received_.find(name);
  if (has_body && header < end) {
    size_t size = 0;
    const size_t value = header + name.size();
    EXPECT_TRUE(absl::SimpleAtoi(
        received_.substr(value, received_.find("\r\n", value) - value), &size));
    end += size;
  }
  while (received_.size() < end && ReadMore()) {
  }
  end = std::min(end, received_.size());
  const std::string answer = received_.substr(0, end);
  received_.erase(0, end);
  return answer;
}

void LocalConnection::CloseSending() { shutdown(fd_, SHUT_WR); }

}  // namespace sfmamba::http
