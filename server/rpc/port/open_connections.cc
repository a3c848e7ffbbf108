#include "server/rpc/port/open_connections.h"

#include <linux/tcp.h>  // glibc's lacks the bytes received.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "server/host/peer_name.h"
#include "server/rpc/port/read_pauses.h"

namespace sfmamba::rpc {
namespace {

// Least connections whose calls are counted at a look.
constexpr size_t kLeastCounted = 16;
// Most looks until the calls of all are counted.
constexpr size_t kLooksOfAll = 25;

ino_t InodeOf(int fd) {
  struct stat found = {};
  return fstat(fd, &found) == 0 ? found.st_ino : 0;
}

// All zero if the kernel does not tell.
tcp_info InfoOf(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info
                                                                  : tcp_info();
}

// Milliseconds since the last byte came; since the connection began if none
// did.
uint32_t SilenceOf(int fd) { return InfoOf(fd).tcpi_last_data_recv; }

}  // namespace

void OpenConnections::Add(int fd) {
  connections_.push_back({fd, InodeOf(fd), server::PeerName(fd)});
}

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

std::vector<ReceiveGuard::Traffic> OpenConnections::MeasureTraffic(
    const ReceiveGuard& guard) {
  for (Connection& connection : connections_) {
    connection.received = InfoOf(connection.fd).tcpi_bytes_received;
  }
  CountCalls();
  std::vector<ReceiveGuard::Traffic> traffic;
  for (const Connection& connection : connections_) {
    if (!IsOpen(connection)) continue;
    const int64_t with_message =
        connection.calls == 0 ? 0 : guard.CallsOf(connection.peer);
    traffic.push_back({connection.peer, connection.received, connection.calls,
                       std::max<int64_t>(0, connection.calls - with_message),
                       connection.failed});
  }
  return traffic;
}

void OpenConnections::CountCalls() {
  const size_t size = connections_.size();
  const size_t most = std::max(kLeastCounted, size / kLooksOfAll);
  size_t counted = 0;
  for (size_t i = 0; i < size && counted < most; ++i) {
    Connection& connection = connections_[next_count_++ % size];
    if (connection.calls == 0 &&
        connection.received == connection.received_at_count) {
      continue;
    }
    ++counted;
    if (connection.id == 0) connection.id = channelz_.IdOf(connection.peer);
    if (connection.id == 0) continue;
    const Channelz::Calls calls = Channelz::CallsOf(connection.id);
    connection.calls = calls.open();
    connection.failed = calls.failed;
    connection.received_at_count = connection.received;
  }
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
    if (connection.peer != peer) continue;
    if (IsOpen(connection)) ReadPauses::Get().Reset(connection.fd);
    connection.inode = 0;
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
