#ifndef SFMAMBA_CLIENT_BENCH_UNAVAILABLE_PAUSE_H_
#define SFMAMBA_CLIENT_BENCH_UNAVAILABLE_PAUSE_H_

#include <algorithm>

#include "absl/time/time.h"

namespace sfmamba::client {

// Decides when a closed loop may send again. A server that cannot be reached
// answers UNAVAILABLE at once. A loop without pauses would then use all CPU
// time and count mostly its own attempts. Each unavailable attempt after a
// pause doubles the next pause.
//
// Does not read a clock. Not thread-safe.
class UnavailablePause {
 public:
  static constexpr absl::Duration kFirst = absl::Milliseconds(5);
  static constexpr absl::Duration kLongest = absl::Milliseconds(500);

  // Reports that an answer arrived at `now`. `sent` is when its request was
  // sent.
  void Answered(bool unavailable, absl::Duration sent, absl::Duration now) {
    if (!unavailable) {
      *this = UnavailablePause();
      return;
    }
    // Requests that were sent before this pause count as the same attempt.
    if (sent < until_) return;
    pause_ = std::clamp(2 * pause_, kFirst, kLongest);
    until_ = now + pause_;
  }

  // Returns when the pause ends. Nothing may be sent before.
  absl::Duration until() const { return until_; }

 private:
  absl::Duration pause_;  // Zero unless the last answer was unavailable.
  absl::Duration until_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_BENCH_UNAVAILABLE_PAUSE_H_
