#ifndef SFMAMBA_SERVER_RPC_PORT_RECEIVE_GUARD_H_
#define SFMAMBA_SERVER_RPC_PORT_RECEIVE_GUARD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/shares/memory_budget.h"

namespace sfmamba::rpc {

// Bounds the memory of calls and of messages that are being received. gRPC's
// own quota, once it is full, ends any calls and sends all idle connections
// away, so that a few that send large messages at once, or begin many calls,
// hurt everyone. Before it is, this names the connections that hold most, to be
// ended. It also names those that begin calls and do not send their messages.
//
// gRPC does not tell what a connection has in reception. It is taken to be what
// the kernel has received of it, less the messages that were handed over, and
// less what came of calls that were reset: on average as much as of those that
// are open. Who resets many small calls beside few large ones is taken to hold
// too little; gRPC's own quota is there for that. What is left fades.
//
// Check() is called by one thread; the others are thread-safe and quick.
class ReceiveGuard {
 public:
  // Connections with fewer bytes in reception are never ended.
  static constexpr int64_t kLittle = 1 << 20;
  // What is left of bytes that are never handed over after this time: 1/e.
  static constexpr absl::Duration kFading = absl::Seconds(30);
  // What gRPC holds for a call, from its headers to its end.
  static constexpr int64_t kCallBytes = 20 << 10;
  // Time after which gRPC still holds 1/e of the calls of a connection that was
  // closed: a call ends when its turn comes.
  static constexpr absl::Duration kLeaving = absl::Seconds(4);
  // Calls may wait this long for their messages while fewer than
  // kLeastProgress bytes come for each of them.
  static constexpr absl::Duration kMostWait = absl::Seconds(10);
  static constexpr int64_t kLeastProgress = 1 << 10;

  struct Options {
    // Most bytes in reception and handed over, together.
    int64_t most_bytes = 0;
    // The bytes of messages that were handed over and are still held.
    std::function<int64_t()> held = [] { return int64_t{0}; };
  };

  // What is known of a connection.
  struct Traffic {
    std::string peer;      // In gRPC's form.
    int64_t received = 0;  // Bytes since it began.
    int64_t calls = 0;     // Those that are open.
    int64_t waiting = 0;   // Open calls whose messages have not come.
    int64_t failed = 0;    // Calls that ended unanswered since it began.
  };

  explicit ReceiveGuard(Options options) : options_(std::move(options)) {}

  // A message of `bytes` has come from `peer`.
  void HandedOver(const std::string& peer, int64_t bytes)
      ABSL_LOCKS_EXCLUDED(mu_);

  // A call of `peer` has been handed to its method, or is gone after that: a
  // unary call once its message has come, a stream, which bounds itself, at
  // once.
  void CallCame(const std::string& peer) ABSL_LOCKS_EXCLUDED(mu_);
  void CallGone(const std::string& peer) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns how many calls of the connection came and are not gone.
  int CallsOf(const std::string& peer) const ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the peers whose connections are to be ended: those whose calls have
  // waited too long; then of the address that holds most the connection that
  // holds most, and so on until the rest fits. `measure` returns the traffic of
  // all connections that are open.
  std::vector<std::string> Check(
      const std::function<std::vector<Traffic>()>& measure, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mu_);

  // What calls, also those of closed connections, and messages in reception
  // held at the last Check(), and at most at any since the last call.
  server::MemoryBudget::Peak TakePeak() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Connection {
    int64_t received = 0;
    // In reception. Below 0 if a message was handed over whose last bytes came
    // after the measurement.
    int64_t bytes = 0;
    int64_t calls = 0;
    int64_t failed = 0;
    // Calls wait since this time and number of bytes; InfiniteFuture(): none.
    absl::Time waits_since = absl::InfiniteFuture();
    int64_t received_then = 0;
    bool open = true;

    int64_t held() const {
      return (bytes > 0 ? bytes : 0) + calls * kCallBytes;
    }
  };

  void Update(const std::vector<Traffic>& traffic, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mu_);
  static void UpdateWait(const Traffic& measured, absl::Time now,
                         Connection* connection);
  std::vector<std::string> ChooseToEnd(int64_t most, absl::Time now);

  const Options options_;
  mutable absl::Mutex mu_;
  // Calls that came and are not gone, by peer; at least 1.
  absl::flat_hash_map<std::string, int> calls_ ABSL_GUARDED_BY(mu_);
  // By peer, since the last Check().
  absl::flat_hash_map<std::string, int64_t> handed_over_ ABSL_GUARDED_BY(mu_);
  server::MemoryBudget::Peak peak_ ABSL_GUARDED_BY(mu_);
  // State of Check() between its calls.
  absl::flat_hash_map<std::string, Connection> connections_;
  absl::Time checked_ = absl::InfinitePast();
  int64_t held_ = 0;     // By all connections.
  int64_t leaving_ = 0;  // By the calls of connections that were closed.
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_RECEIVE_GUARD_H_
