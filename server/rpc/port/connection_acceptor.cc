#include "server/rpc/port/connection_acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "server/threads/thread_name.h"

namespace sfmamba::rpc {
namespace {

// MakeRoom() closes one of every kEndedAtOnce open connections, but at least
// one connection. For example, it closes 5 of 500 connections. It closes
// several connections at the same time, because the search for the connections
// that have been silent longest is slow.
constexpr int kEndedAtOnce = 100;
// The delay before the next accept() after a failure. During this time, the
// process may release descriptors or memory.
constexpr int kPauseMilliseconds = 50;

}  // namespace

ConnectionAcceptor::ConnectionAcceptor(const Options& options,
                                       server::ListeningSockets sockets,
                                       std::unique_ptr<Acceptor> acceptor)
    : options_(options),
      sockets_(std::move(sockets)),
      acceptor_(std::move(acceptor)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { Loop(); }) {}

ConnectionAcceptor::~ConnectionAcceptor() {
  eventfd_write(stop_, 1);
  thread_.join();
  close(stop_);
}

void ConnectionAcceptor::Loop() {
  server::NameThisThread("accept");
  std::vector<pollfd> fds = {{stop_, POLLIN, 0}};
  for (int listener : sockets_.fds()) fds.push_back({listener, POLLIN, 0});
  while (true) {
    if (poll(fds.data(), fds.size(), /*timeout=*/-1) < 0) continue;
    if (fds[0].revents != 0) return;
    for (size_t i = 1; i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      while (Accept(fds[i].fd)) {
      }
    }
  }
}

bool ConnectionAcceptor::Accept(int listener) {
  const int fd =
      accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    if (errno == EINTR || errno == ECONNABORTED) return true;
    if (errno == EAGAIN) return false;
    // The process ran out of descriptors or memory, or the network failed.
    MakeRoom();
    poll(nullptr, 0, kPauseMilliseconds);
    return false;
  }
  if (open_.size() >= options_.max_connections &&
      open_.Count() >= options_.max_connections) {
    MakeRoom();
  }
  if (fd >= options_.max_descriptor) {
    options_.refused();
    close(fd);
    return true;
  }
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  const unsigned timeout = absl::ToInt64Milliseconds(options_.user_timeout);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
  open_.Add(fd);
  Acceptor::NewConnectionParameters connection;
  connection.listener_fd = listener;
  connection.fd = fd;
  acceptor_->HandleNewConnection(&connection);
  return true;
}

void ConnectionAcceptor::MakeRoom() {
  const int ended = std::max(1, open_.Count() / kEndedAtOnce);
  open_.EndMostSilent(ended);
  for (int i = 0; i < ended; ++i) options_.refused();
}

}  // namespace sfmamba::rpc
