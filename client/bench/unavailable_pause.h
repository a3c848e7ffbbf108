#ifndef SFMAMBA_CLIENT_BENCH_UNAVAILABLE_PAUSE_H_
#define SFMAMBA_CLIENT_BENCH_UNAVAILABLE_PAUSE_H_

#include <algorithm>

#include "absl/time/time.h"

namespace sfmamba::client {

// Decides when a closed loop may send again after a request has failed with
// UNAVAILABLE. If a server cannot be reached, requests fail at once. Without
// pauses, the loop would use all CPU time, and most of the requests that it
// counts would be such failures. If a request that is sent after a pause also
// fails with UNAVAILABLE, the next pause is twice as long, up to kLongest. Any
// other answer ends the pause.
//
// Does not read a clock. Not thread-safe.
class UnavailablePause {
 public:
  static constexpr absl::Duration kFirst = absl::Milliseconds(5);
  static constexpr absl::Duration kLongest = absl::Milliseconds(500);

  // Reports that an answer arrived at `now`. `unavailable` is true if the
  // answer's status is UNAVAILABLE. `sent` is when its request was sent.
  void Answered(bool unavailable, absl::Duration sent, absl::Duration now) {
    if (!unavailable) {
      *this = UnavailablePause();
      return;
    }
    // No request is sent during a pause, so this request was sent before the
    // last pause. Requests that are in flight together often fail together.
    // Only the first of these failures begins a pause.
    if (sent < until_) return;
    pause_ = std::clamp(2 * pause_, kFirst, kLongest);
    until_ = now + pause_;
  }

  // Returns when the pause ends. No request may be sent earlier.
  absl::Duration until() const { return until_; }

 private:
  absl::Duration pause_;  // Zero unless the last answer was unavailable.
  absl::Duration until_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_BENCH_UNAVAILABLE_PAUSE_H_
