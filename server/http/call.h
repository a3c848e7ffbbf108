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

// Calls the given function once, when the object is destroyed.
class AtEnd {
 public:
  // Creates an object whose destructor calls nothing.
  AtEnd() = default;
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

// Carries a response from an Exchange to its Connection. `sent` is destroyed
// after the response was written or dropped. Its destructor then calls the
// function that the handler passed to Exchange::Answer().
struct Answered {
  // This member comes first, so that it is destroyed after the response.
  AtEnd sent;
  // Empty if the exchange was destroyed without an answer.
  std::optional<HttpResponse> response;
};

// The state of one request, which a Connection and an Exchange share.
// Thread-safe.
class Call {
 public:
  // `body` reserves the memory of the request's body. `post` delivers the
  // response to the connection. If the connection has ended, `post` drops the
  // response. `post` is called at most once.
  Call(Room::Hold body,
       absl::AnyInvocable<void(std::shared_ptr<Call>, Answered)> post)
      : body_(std::move(body)), post_(std::move(post)) {}

  // Returns the exchange through which a handler answers `request`. If the
  // exchange is destroyed without an answer, its destructor passes an empty
  // Answered to `post`.
  static std::unique_ptr<Exchange> MakeExchange(std::shared_ptr<Call> call,
                                                HttpRequest request);

  // Tells the exchange that the client has disconnected. Called by the
  // connection.
  void Cancel() { cancellation_.Cancel(); }
  // Tells the exchange that the connection can send no response any more.
  // Called by the connection.
  void Drop() { dropped_ = true; }
  bool is_dropped() const { return dropped_; }
  // Returns the memory reservation for the request's body. The reservation
  // grows while the body is decompressed and ends when the request is answered.
  Room::Hold* body() { return &body_; }

 private:
  class LiveExchange;

  // Only the exchange uses the next two members.
  Room::Hold body_;
  absl::AnyInvocable<void(std::shared_ptr<Call>, Answered)> post_;

  std::atomic<bool> dropped_{false};
  call::Cancellation cancellation_;
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_CALL_H_
