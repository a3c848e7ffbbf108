#include "server/rpc/port/open_connections.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

namespace sfmamba::rpc {
namespace {

ino_t InodeOf(int fd) {
  struct stat found = {};
  return fstat(fd, &found) == 0 ? found.st_ino : 0;
}

// Returns the milliseconds since the last byte was received. If no byte was
// received, returns the milliseconds since the connection started.
uint32_t SilenceOf(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0
             ? info.tcpi_last_data_recv
             : 0;
}

}  // namespace

void OpenConnections::Add(int fd) { connections_.push_back({fd, InodeOf(fd)}); }

bool OpenConnections::IsOpen(const Connection& connection) {
  return InodeOf(connection.fd) == connection.inode;
}

int OpenConnections::Count() {
  connections_.erase(
      std::remove_if(connections_.begin(), connections_.end(),
                     [](const Connection& c) { return !IsOpen(c); }),
      connections_.end());
  return size();
}

void OpenConnections::EndMostSilent(int count) {
  count = std::min(count, size());
  // Each element is a pair of a connection's silence in milliseconds and its
  // index.
  std::vector<std::pair<uint32_t, int>> silences;
  for (int i = 0; i < size(); ++i) {
    silences.emplace_back(SilenceOf(connections_[i].fd), i);
  }
  std::partial_sort(silences.begin(), silences.begin() + count, silences.end(),
                    std::greater<>());
  for (int i = 0; i < count; ++i) {
    Connection& connection = connections_[silences[i].second];
    End(connection);
    connection.inode = 0;
  }
  connections_.erase(
      std::remove_if(connections_.begin(), connections_.end(),
                     [](const Connection& c) { return c.inode == 0; }),
      connections_.end());
}

void OpenConnections::End(const Connection& connection) {
  // Between IsOpen() and shutdown(), another connection may reuse the
  // descriptor. That connection is then closed by mistake, and its client must
  // reconnect.
  if (IsOpen(connection)) shutdown(connection.fd, SHUT_RDWR);
}

}  // namespace sfmamba::rpc
