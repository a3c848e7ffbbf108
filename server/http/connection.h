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

// Runs costly steps for a while, one at least, and then lets all else that is
// ready run before it goes on. Used by the loop's thread.
class CostlySteps {
 public:
  using Clock = std::chrono::steady_clock;

  // A handler of Asio's that is bound to it runs here, and all steps that lead
  // to it.
  struct Executor {
    template <typename Step>
    void execute(Step&& step) const {
      steps->Add(std::forward<Step>(step));
    }
    operator CostlySteps*() const noexcept { return steps; }  // For == and !=.

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
    Post();  // First, as a step may throw.
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

// The status line and the headers of an answer, with those of the connection,
// the body's length and the date, `now`. Headers with line breaks or NULs in
// them are left out.
std::string ResponseHead(const HttpResponse& response, bool keep_alive,
                         absl::Time now);

// Whether an answer of that status has a body.
bool HasBody(int status);

// One connection: reads a request, has it started, writes its answer, and so
// on, until End(). What it waits for keeps it alive. Used by its port's thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;
  using Tcp = boost::asio::ip::tcp;

  // Shared by all connections of a port. Only `loop` is used after End().
  struct Environment {
    const HttpOptions& options;
    Room& room;
    // Runs until all connections and exchanges have ended.
    std::shared_ptr<boost::asio::io_context> loop;
    CostlySteps::Executor handshakes;
    // Called with each request that has come whole.
    std::function<void(std::shared_ptr<Call>, HttpRequest)> start;
    // Called when a connection has ended or begins to.
    std::function<void(Connection&)> ended;
    bool is_draining = false;           // Each answer is a connection's last.
    std::array<char, 256 << 10> block;  // What was read last in clear.
  };
  // In the order in which connections are ended when there are too many.
  enum class State {
    kEnded,
    kEnding,     // Its last answer is sent. The client may read it.
    kGreeting,   // The handshake of TLS has not ended.
    kIdle,       // Nothing has come of the next request.
    kHead,       // A part of a request's head has come,
    kBody,       // or of its body.
    kWriting,    // An answer is written,
    kAnswering,  // or made.
  };

  // `socket` does not block; `peer` as in HttpRequest.
  Connection(Environment& environment, Tcp::socket socket, std::string peer);

  void Begin();
  // Closes it. The client counts as gone.
  void End();

  State state() const { return state_; }
  Clock::time_point since() const { return since_; }  // When the state began.

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
  // Ends the connection when the client resets it. A client that has only
  // closed its sending side may still read its responses.
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
  // The client may still read what it was sent.
  void EndSoon();

  Environment& environment_;
  Tcp::socket socket_;
  std::unique_ptr<Tls> tls_;  // Null in clear.
  const std::string peer_;
  Room::Hold tls_hold_;

  State state_ = State::kIdle;
  Clock::time_point since_;
  Clock::time_point deadline_;       // End of the state.
  boost::asio::steady_timer timer_;  // Ends at deadline_ or before.

  bool is_reading_ = false;
  bool peer_closed_ = false;  // The client sends no more.
  std::vector<char> record_;  // What was read last through TLS.
  std::string in_;            // What was read and is not taken in.
  std::optional<RequestReader> reader_;
  Clock::time_point body_began_;
  size_t discarded_ = 0;

  // Used for the request that is answered.
  std::shared_ptr<Call> call_;
  Headers headers_;  // Those that HttpOptions::headers has for the answer.
  bool is_head_ = false;
  bool keep_alive_ = false;
  Room::Hold answer_hold_;
  AtEnd sent_;

  std::vector<std::string> out_;      // To be written after writing_.
  std::vector<std::string> writing_;  // Is being written.
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_CONNECTION_H_
