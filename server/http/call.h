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

// Calls a function once, in its destructor.
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

// A response on its way to its connection. If this object is destroyed before
// the response is written, the response is dropped and `sent` is called.
struct Answered {
  AtEnd sent;                            // First, so that it is destroyed last.
  std::optional<HttpResponse> response;  // Empty if the exchange was dropped.
};

// The state that a connection and the exchange of its request share.
// Thread-safe.
class Call {
 public:
  // `body` is the memory of the request's body. `post` delivers the response to
  // the connection, or drops the response if the connection has ended. `post`
  // is called at most once.
  Call(Room::Hold body,
       absl::AnyInvocable<void(std::shared_ptr<Call>, Answered)> post)
      : body_(std::move(body)), post_(std::move(post)) {}

  // Returns the exchange that answers `call`. If the exchange is destroyed
  // without an answer, its destructor posts an empty Answered.
  static std::unique_ptr<Exchange> MakeExchange(std::shared_ptr<Call> call,
                                                HttpRequest request);

  // Reports that the client has disconnected. Called by the connection.
  void Cancel() { cancellation_.Cancel(); }
  // Reports that no response can be sent any more. Called by the connection.
  void Drop() { dropped_ = true; }
  bool is_dropped() const { return dropped_; }
  // Returns the memory of the request's body. The memory grows if the body is
  // decompressed, and is released when the request is answered.
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
