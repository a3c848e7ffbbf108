#include "server/http/http_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"
#include "httplib.h"
#include "server/base/thread_name.h"
#include "server/http/request_head.h"

namespace sfmamba::http {
namespace {

// How long a connection may still send after its answer, at most as much as a
// head. One that is closed before the client's bytes are read may lose the
// answer.
constexpr absl::Duration kEndTime = absl::Seconds(1);
constexpr absl::Duration kNoDescriptors = absl::Milliseconds(100);
// What an answer is expected to take, for the order of the pool.
constexpr absl::Duration kAnswerCost = absl::Milliseconds(5);

// A request that has come, and the answer.
class MemoryStream : public httplib::Stream {
 public:
  explicit MemoryStream(const std::string& request) : request_(request) {}

  std::string TakeAnswer() { return std::move(answer_); }

  bool is_readable() const override { return read_ < request_.size(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* bytes, size_t size) override {
    size = std::min(size, request_.size() - read_);
    std::memcpy(bytes, request_.data() + read_, size);
    read_ += size;
    return size;
  }
  ssize_t write(const char* bytes, size_t size) override {
    answer_.append(bytes, size);
    return size;
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return -1; }

 private:
  const std::string& request_;
  size_t read_ = 0;
  std::string answer_;
};

// What a request is refused with that no handler sees.
std::string Refusal(int status) {
  const char* reason = "Bad Request";
  if (status == 413) reason = "Payload Too Large";
  if (status == 431) reason = "Request Header Fields Too Large";
  return absl::StrCat("HTTP/1.1 ", status, " ", reason,
                      "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

bool WouldBlock() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

// The handlers, without cpp-httplib's own listener.
class HttpServer::Router : public httplib::Server {
 public:
  std::string Answer(const std::string& head) {
    MemoryStream stream(head);
    bool closed = false;
    process_request(stream, /*close_connection=*/true, closed, nullptr);
    return stream.TakeAnswer();
  }
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    Options options,
    const std::function<void(httplib::Server&)>& add_handlers) {
  absl::StatusOr<server::ListeningSockets> sockets =
      server::ListeningSockets::Bind(options.what, options.host, options.port);
  if (!sockets.ok()) return sockets.status();
  return absl::WrapUnique(
      new HttpServer(std::move(options), *std::move(sockets), add_handlers));
}

HttpServer::HttpServer(
    Options options, server::ListeningSockets sockets,
    const std::function<void(httplib::Server&)>& add_handlers)
    : options_(std::move(options)),
      sockets_(std::move(sockets)),
      router_(std::make_unique<Router>()),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      pool_([this] {
        server::FairPool::Options pool;
        pool.name = "http";
        pool.threads = options_.threads;
        return pool;
      }()) {
  add_handlers(*router_);
  thread_ = std::thread([this] { Loop(); });
}

HttpServer::~HttpServer() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  eventfd_write(wake_, 1);
  thread_.join();
  // The pool's last answers wake nobody.
  absl::MutexLock lock(&mu_);
  close(std::exchange(wake_, -1));
}

void HttpServer::Loop() {
  server::NameThisThread("http");
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      if (stopping_) break;
    }
    Poll();
    TakeAnswers();
  }
  for (const auto& [id, connection] : connections_) close(connection.fd);
}

void HttpServer::Poll() {
  absl::Time next = absl::InfiniteFuture();
  std::vector<pollfd> fds = {{wake_, POLLIN, 0}};
  std::vector<uint64_t> ids;
  for (const auto& [id, connection] : connections_) {
    const bool waits = connection.state == State::kAnswering;
    const bool writes = connection.state == State::kWriting;
    fds.push_back({waits ? -1 : connection.fd,
                   static_cast<short>(writes ? POLLOUT : POLLIN), 0});
    ids.push_back(id);
    next = std::min(next, connection.deadline);
  }
  const absl::Time before = base::SteadyNow();
  if (before >= accept_after_) {
    for (int listener : sockets_.fds()) fds.push_back({listener, POLLIN, 0});
  } else {
    next = std::min(next, accept_after_);
  }
  const absl::Duration wait =
      std::clamp(next - before, absl::ZeroDuration(), absl::Minutes(1));
  poll(fds.data(), fds.size(),
       absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1))));
  if (fds[0].revents != 0) {
    eventfd_t ignored;
    eventfd_read(wake_, &ignored);
  }
  const absl::Time now = base::SteadyNow();
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto found = connections_.find(ids[i]);
    Connection& connection = found->second;
    bool goes_on = true;
    if (fds[i + 1].revents != 0) goes_on = Continue(ids[i], connection);
    if (now >= connection.deadline) goes_on = false;
    if (goes_on) continue;
    close(connection.fd);
    connections_.erase(found);
  }
  for (size_t i = ids.size() + 1; i < fds.size(); ++i) {
    if (fds[i].revents != 0) Accept(fds[i].fd);
  }
}

void HttpServer::Accept(int listener) {
  while (true) {
    const int fd =
        accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return;
      // The process or the machine has no descriptor or memory for it.
      accept_after_ = base::SteadyNow() + kNoDescriptors;
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
    Connection& connection = connections_[++accepted_];
    connection.fd = fd;
    connection.deadline = base::SteadyNow() + options_.head_time;
  }
}

bool HttpServer::EndOne() {
  for (State state : {State::kEnding, State::kReading, State::kWriting}) {
    for (auto it = connections_.begin(); it != connections_.end(); ++it) {
      if (it->second.state != state) continue;
      close(it->second.fd);
      connections_.erase(it);
      return true;
    }
  }
  return false;
}

void HttpServer::TakeAnswers() {
  std::vector<std::pair<uint64_t, std::string>> answers;
  {
    absl::MutexLock lock(&mu_);
    answers.swap(answers_);
  }
  for (auto& [id, answer] : answers) {
    const auto found = connections_.find(id);
    Connection& connection = found->second;
    connection.answer = std::move(answer);
    connection.state = State::kWriting;
    connection.deadline = base::SteadyNow() + options_.answer_time;
    if (Write(connection)) continue;
    close(connection.fd);
    connections_.erase(found);
  }
}

bool HttpServer::Continue(uint64_t id, Connection& connection) {
  switch (connection.state) {
    case State::kReading:
      return Read(id, connection);
    case State::kAnswering:
      return true;
    case State::kWriting:
      return Write(connection);
    case State::kEnding:
      return End(connection);
  }
  return false;  // Not reached: the cases are all there are.
}

bool HttpServer::Read(uint64_t id, Connection& connection) {
  char bytes[4096];
  const ssize_t size = recv(connection.fd, bytes, sizeof(bytes), 0);
  if (size <= 0) return size < 0 && WouldBlock();
  connection.received.append(bytes, size);
  const RequestHead head =
      ReadHead(connection.received, options_.max_head_bytes);
  if (head.status == 0) return true;
  connection.received = std::string();
  if (head.status == 200) {
    connection.state = State::kAnswering;
    connection.deadline = absl::InfiniteFuture();
    StartAnswer(id, head.text);
    return true;
  }
  connection.answer = Refusal(head.status);
  connection.state = State::kWriting;
  return Write(connection);
}

void HttpServer::StartAnswer(uint64_t id, const std::string& head) {
  server::Work work;
  work.group = pool_.NewGroup();
  work.cost = kAnswerCost;
  work.run = [this, id, head] {
    std::string answer = router_->Answer(head);
    absl::MutexLock lock(&mu_);
    answers_.emplace_back(id, std::move(answer));
    if (wake_ >= 0) eventfd_write(wake_, 1);
  };
  pool_.Run(std::move(work));
}

bool HttpServer::Write(Connection& connection) {
  while (connection.sent < connection.answer.size()) {
    const ssize_t size =
        send(connection.fd, connection.answer.data() + connection.sent,
             connection.answer.size() - connection.sent, MSG_NOSIGNAL);
    if (size < 0) return WouldBlock();
    connection.sent += size;
  }
  shutdown(connection.fd, SHUT_WR);
  connection.answer = std::string();
  connection.state = State::kEnding;
  connection.deadline = base::SteadyNow() + kEndTime;
  return true;
}

bool HttpServer::End(Connection& connection) {
  char bytes[4096];
  const ssize_t size = recv(connection.fd, bytes, sizeof(bytes), 0);
  if (size <= 0) return size < 0 && WouldBlock();
  connection.discarded += size;
  return connection.discarded <= options_.max_head_bytes;
}

}  // namespace sfmamba::http
