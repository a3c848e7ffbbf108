#ifndef SFMAMBA_CLIENT_BENCH_UNAVAILABLE_PAUSE_H_
#define SFMAMBA_CLIENT_BENCH_UNAVAILABLE_PAUSE_H_

#include <algorithm>

#include "absl/time/time.h"

namespace sfmamba::client {

// When a closed loop may send again. A server that is away answers UNAVAILABLE
// at once, so that a loop without pauses would use up the machine and count
// nothing but its own attempts. The pause doubles with each attempt after it.
//
// Has no clock. Not thread-safe.
class UnavailablePause {
 public:
  static constexpr absl::Duration kFirst = absl::Milliseconds(5);
  static constexpr absl::Duration kLongest = absl::Milliseconds(500);

  // At `now` an answer has come to a request that was sent at `sent`.
  void Answered(bool unavailable, absl::Duration sent, absl::Duration now) {
    if (!unavailable) {
      *this = UnavailablePause();
      return;
    }
    // Those that were sent before this pause are of the same attempt.
    if (sent < until_) return;
    pause_ = std::clamp(2 * pause_, kFirst, kLongest);
    until_ = now + pause_;
  }

  // Nothing is sent before.
  absl::Duration until() const { return until_; }

 private:
  absl::Duration pause_;  // Zero: the last answer was another one.
  absl::Duration until_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_BENCH_UNAVAILABLE_PAUSE_H_
