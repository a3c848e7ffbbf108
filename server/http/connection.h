#ifndef SFMAMBA_SERVER_HTTP_CONNECTION_H_
#define SFMAMBA_SERVER_HTTP_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "server/http/exchange.h"
#include "server/http/http_options.h"
#include "server/http/mailbox.h"
#include "server/http/request_reader.h"
#include "server/http/room.h"
#include "server/http/socket.h"

namespace sfmamba::http {

// One connection: reads a request, has it started, writes its answer, and so
// on. It is told what its socket is ready for, and never waits itself. Used by
// one thread.
class Connection {
 public:
  // What all connections of a port share.
  struct Environment {
    const HttpOptions& options;
    const std::shared_ptr<Room> room;
    // Called with each request that has come whole.
    std::function<void(std::shared_ptr<Call>, HttpRequest)> start;
    bool is_draining = false;  // Each answer is a connection's last.
  };
  // In the order in which connections are ended when there are too many.
  enum class State {
    kEnding,     // Its last answer is sent. The client may read it.
    kGreeting,   // The handshake of TLS has not ended.
    kIdle,       // Nothing has come of the next request.
    kHead,       // A part of a request's head has come,
    kBody,       // or of its body.
    kWriting,    // An answer is written,
    kAnswering,  // or made.
  };

  // `peer` as in HttpRequest.
  Connection(Environment& environment, std::unique_ptr<Socket> socket,
             uint64_t id, std::string peer, absl::Time now);
  // The client counts as gone.
  ~Connection();
  Connection(const Connection&) = delete;

  int fd() const { return socket_->fd(); }
  State state() const { return state_; }
  absl::Time since() const { return since_; }  // When the state began.

  // What epoll is to look for, and when OnDeadline() is to be called.
  uint32_t events() const;
  absl::Time deadline() const { return deadline_; }

  // Each does what can be done without waiting, and returns false if the
  // connection is over.
  bool OnEvents(uint32_t events, absl::Time now);
  bool OnDeadline(absl::Time now);
  // Of the request that was started last.
  bool OnAnswer(Answered answered, absl::Time now);

  // Whether `call` is the request that waits for its answer.
  bool Awaits(const Call& call) const {
    return state_ == State::kAnswering && call_.get() == &call;
  }

 private:
  void Enter(State state, absl::Time deadline, absl::Time now);
  // Each is false if the connection is over.
  bool Greet(absl::Time now);
  bool Read(absl::Time now);
  bool TakeIn(absl::string_view bytes, absl::Time now);
  bool Discard();
  bool Refuse(Refusal refusal, absl::Time now);
  bool Refuse(HttpResponse response, absl::Time now);
  bool Write(HttpResponse response, absl::Time now);
  bool Flush(absl::Time now);
  bool EndAnswer(absl::Time now);
  // The client may still read what it was sent.
  void EndSoon(absl::Time now);

  // Whether there is something to read that makes no event.
  bool HasMore() const;
  absl::Duration FirstWait() const;
  RequestReader NewReader() const;
  // Of the request that is read: what it is refused with, if it is.
  std::optional<HttpResponse> Admit();
  absl::Time BodyDeadline() const;
  void Start(absl::Time now);
  void OnPeerClosed();

  Environment& environment_;
  std::unique_ptr<Socket> socket_;
  const uint64_t id_;
  const std::string peer_;
  Room::Hold tls_hold_;

  State state_ = State::kIdle;
  absl::Time since_;
  absl::Time deadline_;
  bool peer_closed_ = false;  // The client sends no more.

  RequestReader reader_;
  std::string ahead_;  // Bytes that came after the request.
  absl::Time body_began_;
  size_t discarded_ = 0;

  // Of the request that is answered.
  std::shared_ptr<Call> call_;
  bool is_head_ = false;
  bool keep_alive_ = false;
  absl::AnyInvocable<void()> sent_;  // May be null.
  Room::Hold answer_hold_;

  std::vector<std::string> out_;  // To be written,
  size_t piece_ = 0;              // from this piece on,
  size_t offset_ = 0;             // and this byte of it.
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_CONNECTION_H_
