#ifndef SFMAMBA_SERVER_HTTP_CALL_H_
#define SFMAMBA_SERVER_HTTP_CALL_H_

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "server/call/cancellation.h"
#include "server/http/exchange.h"
#include "server/http/room.h"

namespace sfmamba::http {

// Calls a function once, when it ends.
class AtEnd {
 public:
  AtEnd() = default;  // Calls nothing.
  explicit AtEnd(absl::AnyInvocable<void()> end) : end_(std::move(end)) {}
  AtEnd(AtEnd&& other) noexcept : end_(std::exchange(other.end_, nullptr)) {}
  AtEnd& operator=(AtEnd&& other) noexcept {
    std::swap(end_, other.end_);
    return *this;
  }
  ~AtEnd() {
    if (end_) end_();
  }

 private:
  absl::AnyInvocable<void()> end_;
};

// An answer on its way to its connection. Its end gives it up.
struct Answered {
  AtEnd sent;  // First, so that it is called once the response has gone.
  std::optional<HttpResponse> response;  // None: there is no answer.
};

// What a connection and the exchange of its request share. Thread-safe.
class Call {
 public:
  // `body`: the room of the request's body. `post` brings the answer to the
  // connection, or gives it up; it is called once at most.
  Call(Room::Hold body,
       absl::AnyInvocable<void(std::shared_ptr<Call>, Answered)> post)
      : body_(std::move(body)), post_(std::move(post)) {}

  // The duty to answer `call`; its end without an answer is posted too.
  static std::unique_ptr<Exchange> MakeExchange(std::shared_ptr<Call> call,
                                                HttpRequest request);

  // By the connection: its client has gone.
  void Cancel() { cancellation_.Cancel(); }
  // By the connection: it takes no answer any more.
  void Drop() { dropped_ = true; }
  bool is_dropped() const { return dropped_; }
  // The room of the request's body, for who unpacks it, until the answer.
  Room::Hold* body() { return &body_; }

 private:
  class LiveExchange;

  // Used by the exchange only.
  Room::Hold body_;
  absl::AnyInvocable<void(std::shared_ptr<Call>, Answered)> post_;

  std::atomic<bool> dropped_{false};
  call::Cancellation cancellation_;
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_CALL_H_
