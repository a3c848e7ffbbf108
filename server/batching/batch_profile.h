#ifndef SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_H_
#define SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_H_

#include <map>
#include <utility>

#include "absl/time/time.h"

namespace sfmamba::batching {

// How long batches take, learnt from those that ran lately.
//
// It has no clock: callers pass the time. Thread-compatible.
class BatchProfile {
 public:
  // Height and width of the images of a batch, in pixels.
  using Size = std::pair<int, int>;

  // A batch of `images` images of `size` took `duration` and ended at `now`.
  void Record(Size size, int images, absl::Duration duration, absl::Time now);

  // A duration that a batch of `images` images seldom exceeds: the mean plus
  // twice the mean deviation of the last batches. Where no batch of so many
  // images ran, it is an underestimate from smaller and larger batches. Zero if
  // no batch of `size` ran lately, so that estimates that have become wrong do
  // not last.
  absl::Duration Expected(Size size, int images, absl::Time now) const;

 private:
  struct Estimate {
    absl::Duration mean;
    absl::Duration deviation;
    absl::Time updated;

    absl::Duration upper() const { return mean + 2 * deviation; }
    bool is_fresh(absl::Time now) const;
  };

  std::map<Size, std::map<int, Estimate>> estimates_;  // By images.
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_H_
