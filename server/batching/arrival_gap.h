#ifndef SFMAMBA_SERVER_BATCHING_ARRIVAL_GAP_H_
#define SFMAMBA_SERVER_BATCHING_ARRIVAL_GAP_H_

#include <algorithm>

#include "absl/time/time.h"

namespace sfmamba::batching {

// Moving average of the time between arrivals. Thread-compatible.
class ArrivalGap {
 public:
  void Arrived(absl::Time now) {
    if (last_ != absl::InfinitePast()) {
      const absl::Duration gap = now - last_;
      mean_ = mean_ == absl::InfiniteDuration()
                  ? gap
                  : mean_ + kWeight * (gap - mean_);
    }
    last_ = now;
  }

  // Infinite until two have arrived. Grows while nothing arrives.
  absl::Duration Mean(absl::Time now) const {
    return std::max(mean_, now - last_);
  }

 private:
  static constexpr double kWeight = 0.1;

  absl::Time last_ = absl::InfinitePast();
  absl::Duration mean_ = absl::InfiniteDuration();
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_ARRIVAL_GAP_H_
