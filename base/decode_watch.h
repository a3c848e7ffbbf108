#ifndef SFMAMBA_BASE_DECODE_WATCH_H_
#define SFMAMBA_BASE_DECODE_WATCH_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace sfmamba::base {

// Returns the processor time that the calling thread has used.
absl::Duration ThreadCpuTime();

// Tells when a picture takes too long to decode, or is no longer wanted. It
// measures the thread's own processor time, so that a busy machine accepts what
// an idle one accepts.
//
// The thread that decodes makes and asks it. Decoders ask after every few rows
// or kilobytes, so a step that cannot be divided may overrun the limit.
class DecodeWatch {
 public:
  using Clock = std::function<absl::Duration()>;

  // Tells whether the picture is still wanted.
  using Wanted = std::function<bool()>;

  explicit DecodeWatch(absl::Duration limit = absl::InfiniteDuration(),
                       Clock clock = ThreadCpuTime, Wanted wanted = nullptr);

  bool Expired() const;
  // Returns CANCELLED if the picture is not wanted, else DEADLINE_EXCEEDED,
  // naming the limit. Requires Expired().
  absl::Status status() const;

 private:
  const absl::Duration limit_;
  const Clock clock_;
  const Wanted wanted_;  // Null: the picture is always wanted.
  const absl::Duration start_;
};

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_DECODE_WATCH_H_
