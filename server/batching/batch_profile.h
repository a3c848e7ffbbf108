#ifndef SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_H_
#define SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_H_

#include <map>
#include <vector>

#include "absl/time/time.h"
#include "server/batching/batch_curve.h"
#include "server/batching/batch_key.h"

namespace sfmamba::batching {

// The measured or learned duration of a batch of `images` images that have the
// batch key `key`.
struct BatchTime {
  BatchKey key;
  int images = 0;
  absl::Duration median;
  absl::Duration p95;
};

// Appends estimates for larger batches, up to `max_images` images. The device
// is assumed to run a larger batch in rounds. Each round has as many images as
// the last batch in `times`. The duration is therefore proportional to the
// number of images. Does nothing if `times` is empty.
void AddMultiples(int max_images, std::vector<BatchTime>* times);

// Estimates how long a model's batches take on the model's device, separately
// for each batch key.
//
// The class has no clock, so callers pass the time. Thread-compatible.
class BatchProfile {
 public:
  explicit BatchProfile(int max_images) : unknown_(max_images) {}

  // Reports that a batch of `images` images with the batch key `key` took
  // `duration` and ended at `now`.
  void Record(const BatchKey& key, int images, absl::Duration duration,
              absl::Time now);

  // Adds durations that were measured or that Export() returned. Ignores
  // batches with more images than the constructor's `max_images`.
  void Import(const std::vector<BatchTime>& times, absl::Time now);
  std::vector<BatchTime> Export() const;

  // Returns the curves of all batch keys that have estimates.
  const std::map<BatchKey, BatchCurve>& curves() const { return curves_; }
  // Returns the curve of the batch key `key`. If `key` has no estimates,
  // returns a curve without estimates. The reference is valid until the next
  // Record() or Import().
  const BatchCurve& Curve(const BatchKey& key) const;

 private:
  BatchCurve& MutableCurve(const BatchKey& key);

  const BatchCurve unknown_;
  std::map<BatchKey, BatchCurve> curves_;
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_H_
