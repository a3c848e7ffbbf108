#ifndef SFMAMBA_SERVER_THREADS_RECENT_MEAN_H_
#define SFMAMBA_SERVER_THREADS_RECENT_MEAN_H_

#include <atomic>

#include "absl/time/time.h"

namespace sfmamba::server {

// The mean of durations, of which later ones count more: each moves the mean by
// an eighth of its distance. Zero before the first.
//
// Thread-safe: of two that are added at the same time, one may be lost.
class RecentMean {
 public:
  void Add(absl::Duration duration) {
    const double seconds = absl::ToDoubleSeconds(duration);
    const double mean = seconds_.load();
    seconds_.store(mean == 0 ? seconds : mean + (seconds - mean) / 8);
  }
  absl::Duration mean() const { return absl::Seconds(seconds_.load()); }

 private:
  std::atomic<double> seconds_{0};
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_THREADS_RECENT_MEAN_H_
