#ifndef SFMAMBA_BASE_DECODE_WATCH_H_
#define SFMAMBA_BASE_DECODE_WATCH_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace sfmamba::base {

// Returns the CPU time that the calling thread has used.
absl::Duration ThreadCpuTime();

// Tells a decoder when to stop, because the picture takes too long to decode or
// is no longer wanted. The limit applies to the thread's CPU time, so a busy
// machine accepts the same pictures as an idle one.
//
// The thread that decodes a picture creates and uses the watch. Decoders work
// in steps, most of which are a few rows or kilobytes long. They call Expired()
// only between steps, so decoding may exceed the limit by one step.
class DecodeWatch {
 public:
  using Clock = std::function<absl::Duration()>;

  // Returns true while the picture is still wanted.
  using Wanted = std::function<bool()>;

  explicit DecodeWatch(absl::Duration limit = absl::InfiniteDuration(),
                       Clock clock = ThreadCpuTime, Wanted wanted = nullptr);

  bool Expired() const;
  // Returns the reason why Expired() is true. This is CANCELLED if the picture
  // is no longer wanted. Otherwise it is DEADLINE_EXCEEDED, and the message
  // names the limit. Requires Expired().
  absl::Status status() const;

 private:
  const absl::Duration limit_;
  const Clock clock_;
  const Wanted wanted_;  // If null, the picture is always wanted.
  const absl::Duration start_;
};

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_DECODE_WATCH_H_
