#include "server/http/http_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "base/steady_clock.h"
#include "server/base/peer_name.h"
#include "server/base/thread_name.h"

namespace sfmamba::http {
namespace {

constexpr int kMaxEvents = 1024;
// Connections that are accepted before the others are looked at again.
constexpr int kMaxAccepted = 64;
// Steps of handshakes that are done before the others are looked at again: of
// them a signature takes a millisecond.
constexpr int kMaxGreeted = 8;
constexpr absl::Duration kNoDescriptors = absl::Milliseconds(100);
// What a handler is expected to take, for the order of the pool: it reads the
// whole body about once.
constexpr absl::Duration kHandlerCost = absl::Milliseconds(1);
constexpr double kBytesASecond = 2e8;
// Bodies that take longer to read hold up no others.
constexpr absl::Duration kLongRead = absl::Milliseconds(10);

// What an event of epoll is about, if it is not a connection's number.
constexpr uint64_t kMailbox = 0;
constexpr uint64_t kFirstListener = 1;
constexpr uint64_t kFirstConnection = 1000;

int64_t RoomOf(const HttpOptions& options) {
  const double least = options.max_body_bytes / options.client_share;
  return std::max(options.max_held_bytes,
                  static_cast<int64_t>(std::ceil(least)));
}

void Look(int epoll, int operation, int fd, uint64_t what, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = what;
  epoll_ctl(epoll, operation, fd, &event);
}

bool IsGreeting(const Connection& connection) {
  return connection.state() == Connection::State::kGreeting;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    HttpOptions options, Handler handler) {
  absl::StatusOr<server::ListeningSockets> sockets =
      server::ListeningSockets::Bind(options.what, options.host, options.port);
  if (!sockets.ok()) return sockets.status();
  return absl::WrapUnique(new HttpServer(
      std::move(options), *std::move(sockets), std::move(handler)));
}

HttpServer::HttpServer(HttpOptions options, server::ListeningSockets sockets,
                       Handler handler)
    : options_(std::move(options)),
      sockets_(std::move(sockets)),
      handler_(std::move(handler)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      mailbox_(std::make_shared<Mailbox>()),
      room_(std::make_shared<Room>(RoomOf(options_), options_.client_share)),
      environment_{options_, room_,
                   [this](std::shared_ptr<Call> call, HttpRequest request) {
                     CallHandler(std::move(call), std::move(request));
                   }},
      pool_([this] {
        server::FairPool::Options pool;
        pool.name = "http";
        pool.threads = options_.threads;
        pool.long_piece = kLongRead;
        return pool;
      }()) {
  Look(epoll_, EPOLL_CTL_ADD, mailbox_->fd(), kMailbox, EPOLLIN);
  Listen(true);
  thread_ = std::thread([this] { Loop(); });
}

HttpServer::~HttpServer() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  mailbox_->Wake();
  thread_.join();
  close(epoll_);
}

bool HttpServer::Drain(absl::Duration limit) {
  absl::MutexLock lock(&mu_);
  draining_ = true;
  mailbox_->Wake();
  return drained_now_.Await(
      &mu_, limit,
      [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return drained_; });
}

void HttpServer::Loop() {
  server::NameThisThread("http");
  while (true) {
    Wait();
    TakeAnswers();
    EndLate();
    {
      absl::MutexLock lock(&mu_);
      if (stopping_) break;
      environment_.is_draining = draining_;
    }
    if (environment_.is_draining) GoOnDraining();
  }
  connections_.clear();
  mailbox_->Close();
}

void HttpServer::Wait() {
  absl::Time next = base::SteadyNow() + absl::Minutes(1);
  if (!deadlines_.empty()) next = std::min(next, deadlines_.begin()->first);
  if (!listens_) next = std::min(next, accept_after_);
  const absl::Duration wait =
      std::max(next - base::SteadyNow(), absl::ZeroDuration());
  std::array<epoll_event, kMaxEvents> events;
  const int count = epoll_wait(
      epoll_, events.data(), events.size(),
      absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1))));
  const absl::Time now = base::SteadyNow();
  if (!listens_ && now >= accept_after_) Listen(true);
  int greeted = 0;
  for (int i = 0; i < count; ++i) {
    const auto found = connections_.find(events[i].data.u64);
    if (found == connections_.end()) continue;
    // epoll tells again of those that are left out.
    if (IsGreeting(*found->second.connection) && ++greeted > kMaxGreeted) {
      continue;
    }
    With(found, [&](Connection& connection) {
      return connection.OnEvents(events[i].events, now);
    });
  }
  for (int i = 0; i < count; ++i) {
    const uint64_t what = events[i].data.u64;
    if (what >= kFirstListener && what < kFirstConnection) {
      Accept(sockets_.fds()[what - kFirstListener]);
    }
  }
}

void HttpServer::Listen(bool accepts) {
  for (size_t i = 0; i < sockets_.fds().size(); ++i) {
    Look(epoll_, accepts ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, sockets_.fds()[i],
         kFirstListener + i, EPOLLIN);
  }
  listens_ = accepts;
}

void HttpServer::Accept(int listener) {
  for (int i = 0; i < kMaxAccepted; ++i) {
    const int fd =
        accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return;
      // The process or the machine has no descriptor or memory for it.
      accept_after_ = base::SteadyNow() + kNoDescriptors;
      Listen(false);
      EndOne();
      return;
    }
    const bool is_full =
        connections_.size() >= static_cast<size_t>(options_.max_connections);
    if (is_full) options_.refused();
    if (is_full && !EndOne()) {
      close(fd);
      continue;
    }
    Add(fd);
  }
}

void HttpServer::Add(int fd) {
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  const uint64_t id = kFirstConnection + accepted_++;
  Entry& entry = connections_[id];
  std::string peer = server::PeerName(fd);
  std::unique_ptr<Socket> socket = options_.tls == nullptr
                                       ? std::make_unique<PlainSocket>(fd)
                                       : options_.tls->Accept(fd);
  entry.connection = std::make_unique<Connection>(
      environment_, std::move(socket), id, std::move(peer), base::SteadyNow());
  entry.events = entry.connection->events();
  entry.deadline = entry.connection->deadline();
  deadlines_.emplace(entry.deadline, id);
  Look(epoll_, EPOLL_CTL_ADD, fd, id, entry.events);
}

bool HttpServer::EndOne() {
  auto worst = connections_.end();
  const auto rank = [](const Connection& connection) {
    return std::make_pair(connection.state(), connection.since());
  };
  for (auto it = connections_.begin(); it != connections_.end(); ++it) {
    const Connection& connection = *it->second.connection;
    if (connection.state() == Connection::State::kAnswering) continue;
    if (worst == connections_.end() ||
        rank(connection) < rank(*worst->second.connection)) {
      worst = it;
    }
  }
  if (worst == connections_.end()) return false;
  End(worst);
  return true;
}

template <typename Work>
void HttpServer::With(Connections::iterator found, Work work) {
  const uint64_t id = found->first;
  Entry& entry = found->second;
  Connection& connection = *entry.connection;
  if (!work(connection)) return End(found);
  if (connection.events() != entry.events) {
    entry.events = connection.events();
    Look(epoll_, EPOLL_CTL_MOD, connection.fd(), id, entry.events);
  }
  if (connection.deadline() != entry.deadline) {
    deadlines_.erase({entry.deadline, id});
    entry.deadline = connection.deadline();
    deadlines_.emplace(entry.deadline, id);
  }
}

void HttpServer::End(Connections::iterator found) {
  deadlines_.erase({found->second.deadline, found->first});
  connections_.erase(found);
}

void HttpServer::TakeAnswers() {
  for (Answered& answered : mailbox_->Take()) {
    const auto found = connections_.find(answered.call->connection());
    if (found != connections_.end() &&
        found->second.connection->Awaits(*answered.call)) {
      With(found, [&](Connection& connection) {
        return connection.OnAnswer(std::move(answered), base::SteadyNow());
      });
    } else {
      answered.response.reset();
      if (answered.sent) answered.sent();
    }
  }
}

void HttpServer::EndLate() {
  const absl::Time now = base::SteadyNow();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    With(connections_.find(deadlines_.begin()->second),
         [now](Connection& connection) { return connection.OnDeadline(now); });
  }
}

void HttpServer::GoOnDraining() {
  sockets_.Close();
  std::vector<uint64_t> idle;
  bool is_drained = true;
  for (const auto& [id, entry] : connections_) {
    const Connection::State state = entry.connection->state();
    if (state == Connection::State::kIdle || IsGreeting(*entry.connection)) {
      idle.push_back(id);
    } else if (state != Connection::State::kEnding) {
      is_drained = false;
    }
  }
  for (uint64_t id : idle) End(connections_.find(id));
  if (!is_drained) return;
  absl::MutexLock lock(&mu_);
  drained_ = true;
  drained_now_.SignalAll();
}

void HttpServer::CallHandler(std::shared_ptr<Call> call, HttpRequest request) {
  server::Work work;
  work.group = pool_.NewGroup();
  work.cost = kHandlerCost + absl::Seconds(request.body.size() / kBytesASecond);
  // An exception ends this exchange, and so the request.
  work.run = [this, call,
              exchange =
                  MakeExchange(call, mailbox_, std::move(request))]() mutable {
    if (!call->is_dropped()) handler_(std::move(exchange));
  };
  pool_.Run(std::move(work));
}

}  // namespace sfmamba::http
