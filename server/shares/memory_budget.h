#ifndef SFMAMBA_SERVER_SHARES_MEMORY_BUDGET_H_
#define SFMAMBA_SERVER_SHARES_MEMORY_BUDGET_H_

#include <array>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/shares/hold.h"

namespace sfmamba::server {

// What a request holds memory for.
enum class MemoryUse {
  kMessage,  // Its message, until all of its images are decoded.
  kDecode,   // What decoders work in.
  kInput,    // The model's inputs, until they have been in a batch.
  kAnswer,   // The model's results, then the answers until they are sent.
};
inline constexpr int kMemoryUseCount = 4;

// "message", "decode", "input" or "answer".
const char* MemoryUseName(MemoryUse use);

class MemoryBudget;

// Some bytes of a MemoryBudget, which outlives it.
using MemoryHold = Hold<MemoryBudget>;

// The memory that all requests together may hold. A quarter of it is the
// transport's: what it reads lies there, and messages that have been handed
// over may take half of it, so that it can always read on. A part is kept for
// decoding, so that what waits to be decoded cannot take the memory that it
// waits for. The requests' messages, inputs and answers share the rest. An
// eighth of what is shared is for holds of at most kSmallHold, so that a few
// large requests do not shut out the small ones.
//
// Thread-safe. Nothing blocks: what does not fit is refused. Decoding's part is
// never refused, because the decode pool keeps to it.
class MemoryBudget {
 public:
  static constexpr int64_t kSmallHold = 1 << 20;  // Bytes.

  // What a hold holds.
  struct Part {
    MemoryUse use = MemoryUse::kMessage;
    int64_t bytes = 0;

    Part Split(int64_t some_bytes);
  };

  // `decode_bytes`, decoding's part, is at most three quarters of `bytes`.
  MemoryBudget(int64_t bytes, int64_t decode_bytes);

  int64_t bytes() const { return bytes_; }
  int64_t transport_bytes() const { return bytes_ / 4; }  // Its part.
  // The most that a request's message may take.
  int64_t most_of_message() const { return transport_bytes() / 2; }
  // The most that a request's message, inputs and answers may take together.
  int64_t most_of_request() const { return request_bytes_ / 8 * 7; }

  // RESOURCE_EXHAUSTED with reason QUEUE_FULL of the queue "memory" if `bytes`
  // are not free now.
  absl::StatusOr<MemoryHold> Take(MemoryUse use, int64_t bytes)
      ABSL_LOCKS_EXCLUDED(mu_);

  int64_t held(MemoryUse use) const ABSL_LOCKS_EXCLUDED(mu_);

  // What is held for all uses, now and at most since the last call.
  struct Peak {
    int64_t now = 0;
    int64_t most = 0;
  };
  Peak TakePeak() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend MemoryHold;
  // Makes the part one of `bytes`. Less always succeeds; for more it returns
  // the errors of Take(), and changes nothing.
  absl::Status Resize(int64_t bytes, Part* part) ABSL_LOCKS_EXCLUDED(mu_);
  void GiveBack(const Part& part) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Add(MemoryUse use, int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);

  const int64_t bytes_;
  const int64_t request_bytes_;

  mutable absl::Mutex mu_;
  std::array<int64_t, kMemoryUseCount> held_ ABSL_GUARDED_BY(mu_) = {};
  Peak all_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SHARES_MEMORY_BUDGET_H_
