#ifndef SFMAMBA_SERVER_BATCHING_BATCH_LIMITS_H_
#define SFMAMBA_SERVER_BATCHING_BATCH_LIMITS_H_

#include <cstddef>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sfmamba::batching {

// How many images run together, for each image size. A size has no limit until
// a batch of it needs more memory than the device has. Limits never rise again.
//
// Thread-safe, so that all contexts of a model share one.
class BatchLimits {
 public:
  using Size = std::pair<int, int>;  // An image's height and width in pixels.

  // Returns how many of `wanted` images may run together.
  size_t Allowed(const Size& size, size_t wanted) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Lowers the limit to half of `images`, at least two, which were too many.
  void Halve(const Size& size, size_t images) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  std::map<Size, size_t> limits_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_LIMITS_H_
