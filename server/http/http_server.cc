#include "server/http/http_server.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <list>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/steady_clock.h"
#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/post.hpp"
#include "boost/asio/steady_timer.hpp"
#include "server/host/listening_sockets.h"
#include "server/host/peer_name.h"
#include "server/http/connection.h"
#include "server/http/gzip.h"
#include "server/shares/client_shares.h"
#include "server/threads/fair_pool.h"
#include "server/threads/steady_cond_var.h"
#include "server/threads/thread_name.h"

namespace sfmamba::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;

constexpr std::chrono::milliseconds kNoDescriptors{100};
// When the loop has worked on TLS handshakes for this long, it serves other
// connections before it continues with handshakes. Within this time, the loop
// completes about one handshake, whose signature takes about 1 ms.
constexpr std::chrono::milliseconds kHandshakes{1};
// The expected time of a handler call is kHandlerCost plus the size of the body
// divided by kBytesASecond. The pool prefers calls with a shorter expected
// time. kBytesASecond is the speed of a handler that reads the body once.
constexpr absl::Duration kHandlerCost = absl::Milliseconds(1);
constexpr double kBytesASecond = 2e8;
// If the expected time of a handler call exceeds this time, the call is long.
// Long calls never delay short calls. See FairPool::Options::long_piece.
constexpr absl::Duration kLongRead = absl::Milliseconds(10);

int64_t RoomOf(const HttpOptions& options) {
  const double least = options.max_body_bytes / options.client_share;
  return std::max(options.max_held_bytes,
                  static_cast<int64_t>(std::ceil(least)));
}

}  // namespace

class HttpServer::Port {
 public:
  Port(HttpOptions options, server::ListeningSockets sockets, Handler handler);
  ~Port();

  bool Drain(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);
  int port() const { return sockets_.port(); }
  int64_t held_bytes() const { return room_.held(); }

 private:
  using Connections = absl::flat_hash_set<std::shared_ptr<Connection>>;

  // thread_ calls the following methods.
  void Loop();
  void Accept(tcp::acceptor& acceptor);
  void Add(tcp::socket socket);
  // Closes one connection to make room for a new one. Returns false if the
  // server may close none of the connections.
  bool EndOne();
  void OnEnded(Connection& connection);
  void CloseListeners();
  // Closes idle connections and connections in a TLS handshake. Sets drained_
  // if all other connections have sent their last response.
  void GoOnDraining() ABSL_LOCKS_EXCLUDED(mu_);
  void CallHandler(std::shared_ptr<Call> call, HttpRequest request);
  // Decompresses the body and calls the handler. Called by the pool's threads.
  void Handle(Call& call, std::unique_ptr<Exchange> exchange);

  const HttpOptions options_;
  server::ListeningSockets sockets_;
  const Handler handler_;
  // Limits the memory of requests and responses. Must outlive all exchanges and
  // connections.
  Room room_;
  // The event loop. The exchanges share it and post their responses to it.
  std::shared_ptr<asio::io_context> loop_ =
      std::make_shared<asio::io_context>(1);

  absl::Mutex mu_;
  server::SteadyCondVar drained_now_;  // Signalled when drained_ changes.
  bool drained_ ABSL_GUARDED_BY(mu_) = false;

  // Only thread_ uses the following four members.
  std::list<tcp::acceptor> acceptors_;
  CostlySteps handshakes_{*loop_, kHandshakes};
  Connection::Environment environment_;
  Connections connections_;

  server::FairPool pool_;  // The threads that call handler_.
  // This member comes last because the thread uses all members above.
  std::thread thread_;
};

HttpServer::Port::Port(HttpOptions options, server::ListeningSockets sockets,
                       Handler handler)
    : options_(std::move(options)),
      sockets_(std::move(sockets)),
      handler_(std::move(handler)),
      room_(RoomOf(options_), options_.client_share),
      environment_{options_,
                   room_,
                   loop_,
                   {&handshakes_},
                   [this](std::shared_ptr<Call> call, HttpRequest request) {
                     CallHandler(std::move(call), std::move(request));
                   },
                   [this](Connection& connection) { OnEnded(connection); }},
      pool_({"http", options_.threads, INT64_MAX, kLongRead, kHandlerCost}) {
  for (int fd : sockets_.fds()) {
    acceptors_.emplace_back(*loop_, tcp::v6(), fd);
    Accept(acceptors_.back());
  }
  thread_ = std::thread([this] { Loop(); });
}

HttpServer::Port::~Port() {
  asio::post(*loop_, [this] {
    CloseListeners();
    for (const auto& connection : Connections(connections_)) connection->End();
  });
  thread_.join();
}

bool HttpServer::Port::Drain(absl::Duration limit) {
  asio::post(*loop_, [this] {
    environment_.is_draining = true;
    CloseListeners();
    sockets_.Close();
    GoOnDraining();
  });
  absl::MutexLock lock(&mu_);
  return drained_now_.Await(
      &mu_, limit,
      [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return drained_; });
}

// Runs the event loop until the loop has no pending operation.
void HttpServer::Port::Loop() {
  server::NameThisThread("http");
  for (bool runs = true; runs;) {
    try {
      loop_->run();
      runs = false;
    } catch (const std::exception&) {
      // A handler of the loop threw an exception because memory ran out. The
      // affected connection ends when its timer fires.
    }
  }
}

void HttpServer::Port::Accept(tcp::acceptor& acceptor) {
  acceptor.async_accept([this, &acceptor](Error error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error) {
      // Accept() comes first. If Add() came first and threw an exception, the
      // port would accept no further connections.
      Accept(acceptor);
      return Add(std::move(socket));
    }
    // The process or the machine has run out of file descriptors or memory.
    // Closing a connection frees a descriptor and some memory.
    EndOne();
    const auto again =
        std::make_shared<asio::steady_timer>(*loop_, kNoDescriptors);
    again->async_wait([this, &acceptor, again](Error) {
      if (acceptor.is_open()) Accept(acceptor);
    });
  });
}

void HttpServer::Port::Add(tcp::socket socket) {
  if (connections_.size() >= static_cast<size_t>(options_.max_connections)) {
    options_.refused();
    if (!EndOne()) return;
  }
  Error ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.non_blocking(true, ignored);
  std::string peer = server::PeerName(socket.native_handle());
  const auto connection = std::make_shared<Connection>(
      environment_, std::move(socket), std::move(peer));
  connections_.insert(connection);
  connection->Begin();
}

bool HttpServer::Port::EndOne() {
  const auto worst =
      std::min_element(connections_.begin(), connections_.end(),
                       [](const auto& a, const auto& b) {
                         return std::make_pair(a->state(), a->since()) <
                                std::make_pair(b->state(), b->since());
                       });
  if (worst == connections_.end() ||
      (*worst)->state() == Connection::State::kAnswering) {
    return false;
  }
  (*worst)->End();
  return true;
}

void HttpServer::Port::OnEnded(Connection& connection) {
  if (connection.state() == Connection::State::kEnded) {
    connections_.erase(connection.shared_from_this());
  }
  if (environment_.is_draining) {
    asio::post(*loop_, [this] { GoOnDraining(); });
  }
}

void HttpServer::Port::CloseListeners() {
  Error ignored;
  for (tcp::acceptor& acceptor : acceptors_) acceptor.release(ignored);
}

void HttpServer::Port::GoOnDraining() {
  bool is_drained = true;
  for (const auto& connection : Connections(connections_)) {
    if (connection->state() == Connection::State::kIdle ||
        connection->state() == Connection::State::kGreeting) {
      connection->End();
    } else if (connection->state() != Connection::State::kEnding) {
      is_drained = false;
    }
  }
  if (!is_drained) return;
  absl::MutexLock lock(&mu_);
  drained_ = true;
  drained_now_.SignalAll();
}

void HttpServer::Port::CallHandler(std::shared_ptr<Call> call,
                                   HttpRequest request) {
  request.came = base::SteadyNow();
  server::Work work;
  // A compressed body may have up to `max_body_bytes` bytes after
  // decompression.
  const int64_t bytes = PackingOf(request) == Packing::kNone
                            ? request.body.size()
                            : options_.max_body_bytes;
  work.cost = kHandlerCost + absl::Seconds(bytes / kBytesASecond);
  // The pool shares its threads fairly among groups. A request is cheap if its
  // cost is below 2 * kHandlerCost. All cheap requests of one client are in the
  // same group, because they may take longer than expected. They then delay
  // mainly each other and not the requests of other clients. Each request that
  // is not cheap has a group of its own.
  work.group = work.cost < 2 * kHandlerCost ? absl::HashOf(request.client())
                                            : pool_.NewGroup();
  // If this function throws, the exchange is destroyed, and the client receives
  // status 500.
  work.run = [this, call,
              exchange =
                  Call::MakeExchange(call, std::move(request))]() mutable {
    if (!call->is_dropped()) Handle(*call, std::move(exchange));
  };
  pool_.Run(std::move(work));
}

void HttpServer::Port::Handle(Call& call, std::unique_ptr<Exchange> exchange) {
  HttpRequest& request = exchange->request();
  std::optional<Refusal> refusal;
  if (!request.body.empty() && PackingOf(request) == Packing::kZlib) {
    refusal = Unpack(options_.max_body_bytes, call.body(), &request.body);
  }
  if (!refusal.has_value()) return handler_(std::move(exchange));
  exchange->Answer(
      options_.refusal(request, refusal->status, refusal->message));
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    HttpOptions options, Handler handler) {
  absl::StatusOr<server::ListeningSockets> sockets =
      server::ListeningSockets::Bind(options.what, options.host, options.port);
  if (!sockets.ok()) return sockets.status();
  try {
    return absl::WrapUnique(new HttpServer(std::make_unique<Port>(
        std::move(options), *std::move(sockets), std::move(handler))));
  } catch (const boost::system::system_error& error) {
    return absl::UnavailableError(
        // what() is, for example, "Too many open files".
        error.what());
  }
}

HttpServer::HttpServer(std::unique_ptr<Port> port) : port_(std::move(port)) {}
HttpServer::~HttpServer() = default;

bool HttpServer::Drain(absl::Duration limit) { return port_->Drain(limit); }
int HttpServer::port() const { return port_->port(); }
int64_t HttpServer::held_bytes() const { return port_->held_bytes(); }

}  // namespace sfmamba::http
