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

// The slots of all devices of a model. Run() takes the slot that has been free
// longest, so that batches are spread over the devices.
//
// If a batch needs too much memory, it is halved and retried. The pool
// remembers for each image size how many images were too many. If one device
// fails permanently, the whole pool has failed.
//
// Thread-safe. Run() waits while no slot is free.
class SlotPool {
 public:
  // There must be at least one slot.
  explicit SlotPool(std::vector<std::unique_ptr<BatchSlot>> slots);

  // Fills one result for each image. All images have the same size.
  // RESOURCE_EXHAUSTED if there is too little memory for a single image;
  // INTERNAL once health() is not OK.
  absl::Status Run(absl::Span<const model::ModelInput> images,
                   absl::Span<model::Result> results, model::RunInfo* info)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Runs the images in every slot, one slot after another, to do what the first
  // batch of a size must prepare. Run() must not be called meanwhile.
  absl::Status RunInEachSlot(absl::Span<const model::ModelInput> images)
      ABSL_LOCKS_EXCLUDED(mu_);

  absl::Status health() const ABSL_LOCKS_EXCLUDED(mu_);
  int size() const { return static_cast<int>(slots_.size()); }

 private:
  using Size = std::pair<int, int>;  // An image's height and width.

  BatchSlot* Take() ABSL_LOCKS_EXCLUDED(mu_);
  void GiveBack(BatchSlot* slot) ABSL_LOCKS_EXCLUDED(mu_);
  // Runs the images in batches that fit into memory.
  absl::Status RunInParts(BatchSlot& slot,
                          absl::Span<const model::ModelInput> images,
                          absl::Span<model::Result> results,
                          model::RunInfo* info) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns how many of `wanted` images may run together.
  size_t Allowed(const Size& size, size_t wanted) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Records that `images` images of this size were too many.
  void Shrink(const Size& size, size_t images) ABSL_LOCKS_EXCLUDED(mu_);

  const std::vector<std::unique_ptr<BatchSlot>> slots_;
  mutable absl::Mutex mu_;
  // The free slots. The first one has been free longest.
  std::deque<BatchSlot*> free_ ABSL_GUARDED_BY(mu_);
  // The most images of a size that run together. Other sizes have no limit.
  std::map<Size, size_t> most_ ABSL_GUARDED_BY(mu_);
  absl::Status health_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_SLOT_POOL_H_
