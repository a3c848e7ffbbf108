#include "server/rpc/port/connection_acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "base/steady_clock.h"
#include "server/host/peer_name.h"
#include "server/rpc/port/read_pauses.h"
#include "server/threads/thread_name.h"

namespace sfmamba::rpc {
namespace {

// When there are too many connections, at least one and one in this many are
// ended together: looking for the most silent takes time.
constexpr int kEndedAtOnce = 100;
// Until descriptors or memory may be there again.
constexpr int kPauseMilliseconds = 50;
// Between looks at what connections have in reception: in this time a local
// client can send 20 MB.
constexpr absl::Duration kCheckPeriod = absl::Milliseconds(20);
// Delay of a look while there are no connections: what the calls of closed ones
// hold fades.
constexpr absl::Duration kIdlePeriod = absl::Seconds(1);
// Most connections that wait for the end of a ban.
constexpr size_t kMostWaiting = 256;
// Between the ends of two waits: in this time a connection that floods is
// banned once more.
constexpr absl::Duration kWaitEndPeriod = absl::Milliseconds(50);
// Least interval between looks as a multiple of the processor time that the
// last look took, so that looking takes at most a twentieth of a processor.
constexpr int kCheckShare = 20;

// Returns the processor time that this thread has used.
absl::Duration ProcessorTime() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

// Returns whether the peer has closed or reset the connection.
bool HasGone(int fd) {
  pollfd state = {fd, POLLRDHUP, 0};
  return poll(&state, 1, 0) > 0;
}

// Returns the bytes that were received and not read.
int BytesReceived(int fd) {
  int bytes = 0;
  ioctl(fd, FIONREAD, &bytes);
  return bytes;
}

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
  for (const auto& connection : waiting_) close(connection.second);
}

void ConnectionAcceptor::Loop() {
  server::NameThisThread("accept");
  std::vector<pollfd> fds = {{stop_, POLLIN, 0}};
  for (int listener : sockets_.fds()) fds.push_back({listener, POLLIN, 0});
  while (true) {
    const int events = poll(fds.data(), fds.size(), TimeToNextCheck());
    CheckReceives();
    EndWait();
    if (events < 0) continue;
    if (fds[0].revents != 0) return;
    for (size_t i = 1; i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      while (Accept(fds[i].fd)) {
      }
    }
  }
}

int ConnectionAcceptor::TimeToNextCheck() const {
  absl::Time next = next_check_;
  if (open_.size() == 0) next += kIdlePeriod;
  if (!waiting_.empty()) next = std::min(next, next_wait_end_);
  const absl::Duration left = next - base::SteadyNow();
  return static_cast<int>(std::max<int64_t>(
      0, absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)))));
}

void ConnectionAcceptor::CheckReceives() {
  const absl::Time now = base::SteadyNow();
  if (now < next_check_) return;
  const absl::Duration begin = ProcessorTime();
  open_.Count();
  const std::vector<std::string> ended = options_.receives->Check(
      [this] { return open_.MeasureTraffic(*options_.receives); }, now);
  for (const std::string& peer : ended) open_.End(peer);
  const int all =
      static_cast<int>(ended.size()) + ReadPauses::Get().TakeEnded();
  for (int i = 0; i < all; ++i) options_.refused();
  next_check_ = base::SteadyNow() +
                std::max(kCheckPeriod, kCheckShare * (ProcessorTime() - begin));
}

bool ConnectionAcceptor::Accept(int listener) {
  const int fd =
      accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    if (errno == EINTR || errno == ECONNABORTED) return true;
    if (errno == EAGAIN) return false;
    // Descriptors or memory ran out all the same, or the network failed.
    MakeRoom();
    poll(nullptr, 0, kPauseMilliseconds);
    return false;
  }
  if (open_.size() >= options_.max_connections &&
      open_.Count() >= options_.max_connections) {
    MakeRoom();
  }
  const bool is_banned = ReadPauses::Get().IsBanned(server::PeerName(fd));
  if (fd >= options_.max_descriptor ||
      (is_banned && waiting_.size() >= kMostWaiting)) {
    options_.refused();
    close(fd);
    return true;
  }
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  const unsigned timeout = absl::ToInt64Milliseconds(options_.user_timeout);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
  if (is_banned) {
    waiting_.emplace_back(listener, fd);
  } else {
    HandOver(listener, fd);
  }
  return true;
}

void ConnectionAcceptor::EndWait() {
  const absl::Time now = base::SteadyNow();
  if (waiting_.empty() || now < next_wait_end_) return;
  next_wait_end_ = now + kWaitEndPeriod;
  // A client that has gone would, by what it has left behind, have its address
  // banned once more.
  const auto gone = std::remove_if(waiting_.begin(), waiting_.end(),
                                   [](const std::pair<int, int>& waiting) {
                                     const bool gone = HasGone(waiting.second);
                                     if (gone) close(waiting.second);
                                     return gone;
                                   });
  waiting_.erase(gone, waiting_.end());
  // A client that floods has sent more than others from its address.
  auto least = waiting_.end();
  int least_bytes = std::numeric_limits<int>::max();
  for (auto i = waiting_.begin(); i != waiting_.end(); ++i) {
    const int bytes = BytesReceived(i->second);
    if (bytes < least_bytes &&
        !ReadPauses::Get().IsBanned(server::PeerName(i->second))) {
      least = i;
      least_bytes = bytes;
    }
  }
  if (least == waiting_.end()) return;
  const auto [listener, fd] = *least;
  waiting_.erase(least);
  HandOver(listener, fd);
}

void ConnectionAcceptor::HandOver(int listener, int fd) {
  open_.Add(fd);
  ReadPauses::Get().SetMostHeaders(options_.most_headers);
  ReadPauses::Get().SetMostWaiting(options_.most_waiting);
  ReadPauses::Get().Begin(fd, options_.most_unanswered);
  Acceptor::NewConnectionParameters connection;
  connection.listener_fd = listener;
  connection.fd = fd;
  acceptor_->HandleNewConnection(&connection);
}

void ConnectionAcceptor::MakeRoom() {
  const int ended = std::max(1, open_.Count() / kEndedAtOnce);
  open_.EndMostSilent(ended);
  for (int i = 0; i < ended; ++i) options_.refused();
}

}  // namespace sfmamba::rpc
