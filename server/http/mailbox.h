#ifndef SFMAMBA_SERVER_HTTP_MAILBOX_H_
#define SFMAMBA_SERVER_HTTP_MAILBOX_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "server/http/exchange.h"
#include "server/http/room.h"

namespace sfmamba::http {

// What a connection and the exchange of its request know together.
// Thread-safe.
class Call {
 public:
  // `connection`: its number. `body`: the room of the request's body.
  Call(uint64_t connection, Room::Hold body)
      : connection_(connection), body_(std::move(body)) {}

  uint64_t connection() const { return connection_; }

  // See Exchange.
  void OnCancel(absl::AnyInvocable<void()> cancelled) ABSL_LOCKS_EXCLUDED(mu_);

  // By the connection: its client has gone, at most once.
  void Cancel() ABSL_LOCKS_EXCLUDED(mu_);
  // By the connection: nobody is left who could take an answer.
  void Drop() { dropped_ = true; }
  bool is_dropped() const { return dropped_; }

  // By whoever answers: the body is done with.
  void ReleaseBody() { body_.Release(); }

 private:
  const uint64_t connection_;
  Room::Hold body_;  // Used by whoever answers only.
  std::atomic<bool> dropped_{false};

  absl::Mutex mu_;
  bool is_cancelled_ ABSL_GUARDED_BY(mu_) = false;
  absl::AnyInvocable<void()> cancelled_ ABSL_GUARDED_BY(mu_);
};

// An answer on its way to its connection.
struct Answered {
  std::shared_ptr<Call> call;
  // None: the exchange ended without an answer.
  std::optional<HttpResponse> response;
  absl::AnyInvocable<void()> sent;  // May be null.
};

// Where threads leave answers for the thread of the connections. It outlives
// that thread, as the exchanges may. Thread-safe.
class Mailbox {
 public:
  Mailbox();
  ~Mailbox();

  // Readable while there is something to take, or after Wake().
  int fd() const { return fd_; }

  // Gives the answer up, after Close().
  void Post(Answered answered) ABSL_LOCKS_EXCLUDED(mu_);
  void Wake();

  std::vector<Answered> Take() ABSL_LOCKS_EXCLUDED(mu_);
  // Gives up what has come.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const int fd_;  // An eventfd.
  absl::Mutex mu_;
  std::vector<Answered> answers_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

// The exchange of `call`.
std::unique_ptr<Exchange> MakeExchange(std::shared_ptr<Call> call,
                                       std::shared_ptr<Mailbox> mailbox,
                                       HttpRequest request);

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_MAILBOX_H_
