#ifndef SFMAMBA_MODEL_ENGINE_SLOT_POOL_H_
#define SFMAMBA_MODEL_ENGINE_SLOT_POOL_H_

#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "model/engine/batch_slot.h"

namespace sfmamba::engine {

// The slots of a model, of all its devices. Run() takes the one that has been
// free for longest, so that batches spread over the devices.
//
// A batch for which memory does not suffice is halved and tried again; what was
// too many images of a size is not tried a second time. When one device has
// failed for good, so has the pool.
//
// Thread-safe. Run() waits while all slots are taken.
class SlotPool {
 public:
  // One at least.
  explicit SlotPool(std::vector<std::unique_ptr<BatchSlot>> slots);

  // Fills one result for each image, which are of one size. RESOURCE_EXHAUSTED
  // if memory does not suffice for one of them alone; INTERNAL once health() is
  // not OK.
  absl::Status Run(absl::Span<const model::ModelInput> images,
                   absl::Span<model::Result> results, model::RunInfo* info)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Runs them in every slot, one slot after another, for what a slot's first
  // batch of a size must prepare. Nothing else may run meanwhile.
  absl::Status RunInEachSlot(absl::Span<const model::ModelInput> images)
      ABSL_LOCKS_EXCLUDED(mu_);

  absl::Status health() const ABSL_LOCKS_EXCLUDED(mu_);
  int size() const { return static_cast<int>(slots_.size()); }

 private:
  using Size = std::pair<int, int>;  // Height and width of images.

  BatchSlot* Take() ABSL_LOCKS_EXCLUDED(mu_);
  void GiveBack(BatchSlot* slot) ABSL_LOCKS_EXCLUDED(mu_);
  // Runs as many images as memory allows at a time.
  absl::Status RunInParts(BatchSlot& slot,
                          absl::Span<const model::ModelInput> images,
                          absl::Span<model::Result> results,
                          model::RunInfo* info) ABSL_LOCKS_EXCLUDED(mu_);
  // How many of `wanted` images to run together.
  size_t Allowed(const Size& size, size_t wanted) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // So many were too many.
  void Shrink(const Size& size, size_t images) ABSL_LOCKS_EXCLUDED(mu_);

  const std::vector<std::unique_ptr<BatchSlot>> slots_;
  mutable absl::Mutex mu_;
  std::deque<BatchSlot*> free_ ABSL_GUARDED_BY(mu_);  // Longest first.
  // The most images of a size that run together; others: any number.
  std::map<Size, size_t> most_ ABSL_GUARDED_BY(mu_);
  absl::Status health_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_SLOT_POOL_H_
