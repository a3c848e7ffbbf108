#ifndef SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_H_
#define SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_H_

#include <map>
#include <vector>

#include "absl/time/time.h"
#include "server/batching/batch_curve.h"
#include "server/batching/batch_key.h"

namespace sfmamba::batching {

// What was measured or learnt: how long batches of `images` images of `key`
// take.
struct BatchTime {
  BatchKey key;
  int images = 0;
  absl::Duration median;
  absl::Duration p95;
};

// Adds what larger batches of up to `max_images` images take on a device that
// runs so many images at a time as the last of `times` has: as often as long as
// they have its images. Nothing is added to none.
void AddMultiples(int max_images, std::vector<BatchTime>* times);

// How long a model's batches take on its device, by key.
//
// It has no clock: callers pass the time. Thread-compatible.
class BatchProfile {
 public:
  explicit BatchProfile(int max_images) : unknown_(max_images) {}

  // A batch of `images` images of `key` took `duration` and ended at `now`.
  void Record(const BatchKey& key, int images, absl::Duration duration,
              absl::Time now);

  // Adds what was measured or exported. Ignores sizes above the maximum.
  void Import(const std::vector<BatchTime>& times, absl::Time now);
  std::vector<BatchTime> Export() const;

  // All keys of which something is known.
  const std::map<BatchKey, BatchCurve>& curves() const { return curves_; }
  // Returns a curve that knows nothing if no batch of `key` ran. The reference
  // is valid until the next Record() or Import().
  const BatchCurve& Curve(const BatchKey& key) const;

 private:
  BatchCurve& MutableCurve(const BatchKey& key);

  const BatchCurve unknown_;
  std::map<BatchKey, BatchCurve> curves_;
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_H_
