#include "server/rpc/open_connections.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "server/base/peer_name.h"

namespace sfmamba::rpc {
namespace {

ino_t InodeOf(int fd) {
  struct stat found = {};
  return fstat(fd, &found) == 0 ? found.st_ino : 0;
}

// Milliseconds since the last byte came; since the connection began if none
// did.
uint32_t SilenceOf(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return info.tcpi_last_data_recv;
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
  return static_cast<int>(connections_.size());
}

void OpenConnections::EndMostSilent(int count) {
  std::vector<std::pair<uint32_t, size_t>> silences;
  for (size_t i = 0; i < connections_.size(); ++i) {
    silences.emplace_back(SilenceOf(connections_[i].fd), i);
  }
  count = std::min<int>(count, silences.size());
  std::partial_sort(silences.begin(), silences.begin() + count, silences.end(),
                    std::greater<>());
  for (int i = 0; i < count; ++i) End(&connections_[silences[i].second]);
  Forget();
}

void OpenConnections::End(const std::string& peer) {
  for (Connection& connection : connections_) {
    if (IsOpen(connection) && server::PeerName(connection.fd) == peer)
      End(&connection);
  }
  Forget();
}

void OpenConnections::End(Connection* connection) {
  // Closed and taken by another between these two calls: that one must connect
  // anew.
  if (IsOpen(*connection)) shutdown(connection->fd, SHUT_RDWR);
  connection->inode = 0;
}

void OpenConnections::Forget() {
  connections_.erase(
      std::remove_if(connections_.begin(), connections_.end(),
                     [](const Connection& c) { return c.inode == 0; }),
      connections_.end());
}

}  // namespace sfmamba::rpc
