#ifndef SFMAMBA_SERVER_HTTP_CONNECTION_H_
#define SFMAMBA_SERVER_HTTP_CONNECTION_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/post.hpp"
#include "boost/asio/ssl/stream.hpp"
#include "boost/asio/steady_timer.hpp"
#include "server/http/call.h"
#include "server/http/exchange.h"
#include "server/http/http_options.h"
#include "server/http/request_reader.h"
#include "server/http/room.h"

namespace sfmamba::http {

// Runs costly steps, such as TLS handshakes, on the loop's thread in short
// batches. A batch runs at least one step. When a batch has run for `limit`, it
// starts no further step. Between two batches, the loop runs its other ready
// handlers. Used only by the loop's thread.
class CostlySteps {
 public:
  using Clock = std::chrono::steady_clock;

  // An Asio executor for costly steps. If the handler of an operation is bound
  // to this executor, the handler runs as a costly step. The intermediate
  // handlers of the operation run as costly steps too.
  struct Executor {
    template <typename Step>
    void execute(Step&& step) const {
      steps->Add(std::forward<Step>(step));
    }
    // Lets Asio compare two executors with == and !=.
    operator CostlySteps*() const noexcept { return steps; }

    CostlySteps* steps;
  };

  CostlySteps(boost::asio::io_context& loop, Clock::duration limit)
      : loop_(loop), limit_(limit) {}

 private:
  void Add(absl::AnyInvocable<void()> step) {
    steps_.push_back(std::move(step));
    Post();
  }
  void Post() {
    if (steps_.empty() || std::exchange(is_posted_, true)) return;
    boost::asio::post(loop_, [this] { Run(); });
  }
  void Run() {
    is_posted_ = false;
    // Post() schedules the next batch for the remaining steps. Post() comes
    // first, so that the next batch runs even if a step throws an exception.
    Post();
    for (const auto begin = Clock::now(); !steps_.empty();) {
      auto step = std::move(steps_.front());
      steps_.pop_front();
      step();
      if (Clock::now() - begin >= limit_) break;
    }
  }

  boost::asio::io_context& loop_;
  const Clock::duration limit_;
  bool is_posted_ = false;
  std::deque<absl::AnyInvocable<void()>> steps_;
};

// Returns the status line and the headers of a response. Adds the headers Date
// (from `now`) and Connection. Also adds Content-Length if the status allows a
// body. Omits headers that contain line breaks or NULs.
std::string ResponseHead(const HttpResponse& response, bool keep_alive,
                         absl::Time now);

// Returns true if a response with this status has a body.
bool HasBody(int status);

// Serves one connection. Reads a request, passes the request to
// Environment::start, writes the response and then reads the next request. Each
// pending operation holds a reference to the connection. Used by the port's
// thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;
  using Tcp = boost::asio::ip::tcp;

  // All connections of a port share one environment. After End(), a connection
  // uses only the member `loop`.
  struct Environment {
    const HttpOptions& options;
    Room& room;
    // The event loop of the port's thread. Runs until all connections have
    // ended and all exchanges are destroyed.
    std::shared_ptr<boost::asio::io_context> loop;
    CostlySteps::Executor handshakes;
    // Called with each request that has been received completely.
    std::function<void(std::shared_ptr<Call>, HttpRequest)> start;
    // Called when a connection has ended. While the server drains, also called
    // when a connection enters the state kEnding.
    std::function<void(Connection&)> ended;
    // If true, each connection closes after its next response.
    bool is_draining = false;
    // The buffer into which all plaintext connections read.
    std::array<char, 256 << 10> block;
  };
  // The states of a connection. If there are too many connections, the server
  // closes a connection with the lowest state first.
  enum class State {
    kEnded,
    kEnding,     // The last response was sent. The client may still read it.
    kGreeting,   // The TLS handshake is in progress.
    kIdle,       // No byte of the next request has arrived.
    kHead,       // A part of a request's head has arrived.
    kBody,       // The head and perhaps a part of the body have arrived.
    kWriting,    // The response is being written.
    kAnswering,  // The request waits for its response.
  };

  // `socket` must be non-blocking. `peer` has the same format as
  // HttpRequest::peer.
  Connection(Environment& environment, Tcp::socket socket, std::string peer);

  void Begin();
  // Closes the connection and cancels its request.
  void End();

  State state() const { return state_; }
  // Returns the time when the connection entered its current state.
  Clock::time_point since() const { return since_; }

 private:
  using Error = boost::system::error_code;
  using Tls = boost::asio::ssl::stream<Tcp::socket&>;

  void Enter(State state, absl::Duration limit);
  void Arm();
  void OnTimer();

  void OnGreeted(Error error);
  void Read();
  void ReadSocket();
  void OnRead(Error error, absl::string_view bytes);
  // Starts to wait for a reset by the client. When a reset arrives, the
  // connection ends. Called if the client has closed its sending side while a
  // response is pending. Without a reset, the connection stays open, because
  // the client may still read the response.
  void EndOnReset();
  void TakeIn(absl::string_view bytes);
  absl::Duration BodyLimit();
  void Start();
  void OnAnswer(Answered answered);

  void Refuse(Refusal refusal);
  void Refuse(HttpResponse response);
  void Write(HttpResponse response);
  void Flush();
  void EndAnswer();
  // Closes only the server's sending side and not the whole connection, so that
  // the client can still read the last response. The connection ends when the
  // client closes its side, or after one second.
  void EndSoon();

  Environment& environment_;
  Tcp::socket socket_;
  std::unique_ptr<Tls> tls_;  // Null if the connection is plaintext.
  const std::string peer_;
  Room::Hold tls_hold_;

  State state_ = State::kIdle;
  Clock::time_point since_;
  // The time at which the time limit of state_ ends.
  Clock::time_point deadline_;
  // The timer fires at deadline_ or earlier.
  boost::asio::steady_timer timer_;

  bool is_reading_ = false;
  // True if the client has closed its sending side or if reading has failed.
  bool peer_closed_ = false;
  std::vector<char> record_;  // The bytes last read through TLS.
  std::string in_;  // Received bytes that the reader has not consumed.
  std::optional<RequestReader> reader_;
  Clock::time_point body_began_;
  size_t discarded_ = 0;

  // These members belong to the request that is being answered.
  std::shared_ptr<Call> call_;
  Headers headers_;  // The result of HttpOptions::headers.
  bool is_head_ = false;
  bool keep_alive_ = false;
  Room::Hold answer_hold_;
  AtEnd sent_;

  // Buffers that are written when the current write has ended.
  std::vector<std::string> out_;
  // The buffers of the current write.
  std::vector<std::string> writing_;
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_CONNECTION_H_
