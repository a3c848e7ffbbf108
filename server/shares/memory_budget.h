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

// The purpose for which a request holds memory.
enum class MemoryUse {
  // The message of the request. It is held until all images of the request are
  // decoded.
  kMessage,
  // The working memory of the decoders.
  kDecode,
  // The inputs of the model. They are held until their batch has run.
  kInput,
  // The results of the model, then the responses until they are sent.
  kAnswer,
};
inline constexpr int kMemoryUseCount = 4;

// Returns "message", "decode", "input" or "answer".
const char* MemoryUseName(MemoryUse use);

class MemoryBudget;

// A number of bytes taken from a MemoryBudget. The budget must outlive the
// hold.
using MemoryHold = Hold<MemoryBudget>;

// Limits the memory that all requests hold together. The budget has three
// parts:
// - A quarter is the transport's part, which is for messages. The messages of
//   requests in progress may take about half of this quarter. The other half is
//   for messages that the transport (gRPC) is still receiving. The transport
//   can therefore always continue to read.
// - `decode_bytes` are reserved for decoding. Images that wait to be decoded
//   can therefore not use up the memory that decoding needs.
// - The messages, inputs and answers of requests in progress share the rest.
//   One eighth of the rest is available only to holds of at most kSmallHold. A
//   few large requests therefore cannot block small ones.
//
// The message of a request in progress counts twice: in the first and in the
// third part.
//
// Thread-safe. No method blocks. Take() returns an error if too little memory
// is free. Memory for decoding is never refused, because the decode pool limits
// its own use.
class MemoryBudget {
 public:
  static constexpr int64_t kSmallHold = 1 << 20;  // In bytes.

  // The bytes of one hold and their purpose.
  struct Part {
    MemoryUse use = MemoryUse::kMessage;
    int64_t bytes = 0;

    Part Split(int64_t some_bytes);
  };

  // `decode_bytes` is the part of the budget for decoding. It must be at most
  // three quarters of `bytes`.
  MemoryBudget(int64_t bytes, int64_t decode_bytes);

  int64_t bytes() const { return bytes_; }
  // Returns the size of the transport's part of the budget, in bytes.
  int64_t transport_bytes() const { return bytes_ / 4; }
  // Returns the maximum size of one request's message, in bytes.
  int64_t most_of_message() const { return transport_bytes() / 2; }
  // Returns the maximum size of one request's message, inputs and answers
  // together, in bytes.
  int64_t most_of_request() const { return request_bytes_ / 8 * 7; }

  // Takes `bytes` for the purpose `use`. Returns RESOURCE_EXHAUSTED if fewer
  // than `bytes` are free for this purpose. The error has the reason
  // QUEUE_FULL, and its field `queue` has the value "memory".
  absl::StatusOr<MemoryHold> Take(MemoryUse use, int64_t bytes)
      ABSL_LOCKS_EXCLUDED(mu_);

  int64_t held(MemoryUse use) const ABSL_LOCKS_EXCLUDED(mu_);

  // The bytes held for all purposes together.
  //   now:  the current number
  //   most: the maximum since the last call of TakePeak()
  struct Peak {
    int64_t now = 0;
    int64_t most = 0;
  };
  Peak TakePeak() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend MemoryHold;
  // Changes the size of `part` to `bytes`. Shrinking always succeeds. If
  // growing fails, returns the error of Take() and changes nothing.
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
