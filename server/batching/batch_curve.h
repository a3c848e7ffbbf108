#ifndef SFMAMBA_SERVER_BATCHING_BATCH_CURVE_H_
#define SFMAMBA_SERVER_BATCHING_BATCH_CURVE_H_

#include <map>
#include <vector>

#include "absl/time/time.h"

namespace sfmamba::batching {

// Estimates how long batches with one batch key (image size and type) take. The
// estimated duration T depends on the number of images in the batch (the size).
// The first estimates come from measurements. Each batch that runs corrects T.
//
// T never decreases with the size. Between the sizes that ran, T is
// interpolated. Below the smallest size that ran, T is proportional to the
// size. Above the largest size that ran, T is constant. In both ranges, T is
// too low on purpose, so that the scheduler tries other sizes. Without any
// estimate, T is zero.
//
// The class has no clock, so callers pass the time. Thread-compatible.
class BatchCurve {
 public:
  // The estimate for batches of one size.
  struct Point {
    absl::Duration median;
    absl::Duration p95;  // The 95th percentile. At least the median.
  };

  // `max_images` is the largest number of images in a batch.
  explicit BatchCurve(int max_images);

  // Sets the estimate for batches of `images` images.
  void Set(int images, const Point& point, absl::Time now);
  // Reports that a batch of `images` images took `duration` and ended at `now`.
  void Record(int images, absl::Duration duration, absl::Time now);

  // Return the median and the 95th percentile of the duration of a batch.
  // `images` is from 1 to max_images().
  absl::Duration Median(int images) const { return median_[images]; }
  absl::Duration P95(int images) const { return p95_[images]; }

  // Returns the efficient sizes in ascending order. An efficient size computes
  // clearly more images per second than every smaller size. If batching is no
  // faster, the only efficient size is 1. Without any estimate, returns all
  // sizes.
  const std::vector<int>& efficient_sizes() const { return efficient_; }
  // Returns the largest efficient size.
  int best_size() const { return efficient_.back(); }
  // Returns the time for `images` images in batches of the best size and one
  // smaller batch for the remaining images. `images` may exceed max_images().
  absl::Duration Work(int images) const;

  // Returns true if batches of more than `images` images have neither run nor
  // been measured recently. The estimates for such batches may then be wrong.
  bool LargerAreOld(int images, absl::Time now) const;

  bool is_known() const { return !samples_.empty(); }
  // Returns true if a batch ran or was measured recently. If not, the estimates
  // may be wrong, and no task should be refused because of them.
  bool IsFresh(absl::Time now) const;
  absl::Time updated() const { return updated_; }
  int max_images() const { return max_images_; }
  // Returns the ratio of recent batch durations to the first durations of the
  // same sizes. For example, 2 means that batches now take twice as long.
  double pace() const { return pace_; }

  // Returns the estimate of each size that has run or was passed to Set().
  std::map<int, Point> Points() const;

 private:
  struct Sample {
    double mean = 0;       // The mean duration, in seconds.
    double deviation = 0;  // The mean absolute deviation, in seconds.
    // The mean duration of the first batches in seconds, divided by pace().
    double first = 0;
    double pace = 1;   // The value of pace() when the size last ran.
    int batches = 0;   // The number of batches in the mean.
    int runs = 0;      // The number of batches since Set().
    bool set = false;  // True if Set() was called.
    absl::Time updated;

    bool IsOld(absl::Time now) const;
  };

  // Corrects old measurements of sizes above `images` after a batch of `images`
  // images. `ratio` is the duration of this batch divided by the old
  // measurement of the size `images`. If `ratio` is below 1, multiplies the old
  // measurements of the larger sizes by `ratio`. Sizes that have run since
  // their measurement are not changed.
  void Shorten(int images, double ratio);
  // Recomputes median_, p95_ and efficient_ from samples_.
  void Fit(absl::Time now);

  const int max_images_;
  std::map<int, Sample> samples_;  // Keyed by number of images.
  double pace_ = 1;
  absl::Time updated_ = absl::InfinitePast();
  std::vector<absl::Duration> median_;  // Indexed by number of images.
  std::vector<absl::Duration> p95_;
  std::vector<int> efficient_;  // Never empty.
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_CURVE_H_
