#ifndef SFMAMBA_SERVER_BATCHING_BATCH_CURVE_H_
#define SFMAMBA_SERVER_BATCHING_BATCH_CURVE_H_

#include <map>
#include <vector>

#include "absl/time/time.h"

namespace sfmamba::batching {

// How long batches of one key take, as a function T of their images: measured,
// then corrected by each batch that runs.
//
// T never falls with the number of images. Between sizes that ran it is
// interpolated. Beyond them it is an underestimate, so that such a size is
// tried: below the smallest in proportion to the images, above the largest
// constant. It is zero while nothing is known.
//
// It has no clock: callers pass the time. Thread-compatible.
class BatchCurve {
 public:
  // What is known of one size.
  struct Point {
    absl::Duration median;
    absl::Duration p95;  // Not below the median.
  };

  // Batches have 1 to `max_images` images.
  explicit BatchCurve(int max_images);

  // Replaces what is known of batches of `images` images.
  void Set(int images, const Point& point, absl::Time now);
  // A batch of `images` images took `duration` and ended at `now`.
  void Record(int images, absl::Duration duration, absl::Time now);

  // T50 and T95. `images` is between 1 and max_images().
  absl::Duration Median(int images) const { return median_[images]; }
  absl::Duration P95(int images) const { return p95_[images]; }

  // The sizes that compute clearly more images a second than every smaller
  // one, in ascending order. Just 1 where batches take as long as their images
  // would one by one. Every size while nothing is known.
  const std::vector<int>& efficient_sizes() const { return efficient_; }
  // The largest of them.
  int best_size() const { return efficient_.back(); }
  // The time that `images` images take at the best size, and the rest in one
  // smaller batch. `images` may exceed max_images().
  absl::Duration Work(int images) const;

  // Whether batches of more than `images` images have not run, nor were
  // measured, for so long that what is known of them may be wrong. While
  // nothing uses them nothing would correct it.
  bool LargerAreOld(int images, absl::Time now) const;

  bool is_known() const { return !samples_.empty(); }
  // Whether a batch ran recently. An estimate that is old may be wrong, and no
  // task should be refused because of it.
  bool IsFresh(absl::Time now) const;
  absl::Time updated() const { return updated_; }
  int max_images() const { return max_images_; }
  // Lately measured durations as a multiple of those first measured.
  double pace() const { return pace_; }

  // The sizes that were set or ran, with the latest estimates.
  std::map<int, Point> Points() const;

 private:
  struct Sample {
    double mean = 0;       // Seconds.
    double deviation = 0;  // The mean absolute deviation, in seconds.
    double first = 0;      // The mean of the first batches at a pace of 1.
    double pace = 1;       // pace_ when the size last ran.
    int batches = 0;       // That the mean is of.
    int runs = 0;          // Batches since it was set.
    bool set = false;      // Measured or imported.
    absl::Time updated;

    bool IsOld(absl::Time now) const;
  };

  // A batch of `images` images took `ratio` of what was measured long ago. If
  // less, what was measured then of larger ones and has not run since is as
  // wrong.
  void Shorten(int images, double ratio);
  // Recomputes median_, p95_ and efficient_ from samples_.
  void Fit(absl::Time now);

  const int max_images_;
  std::map<int, Sample> samples_;  // By images.
  double pace_ = 1;
  absl::Time updated_ = absl::InfinitePast();
  std::vector<absl::Duration> median_;  // By images; the first is unused.
  std::vector<absl::Duration> p95_;
  std::vector<int> efficient_;  // Never empty.
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_CURVE_H_
