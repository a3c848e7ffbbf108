#ifndef SFMAMBA_MODEL_ENGINE_BATCH_SLOT_H_
#define SFMAMBA_MODEL_ENGINE_BATCH_SLOT_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "model/result.h"
#include "model/vision_model.h"

namespace sfmamba::engine {

// Runs batches on a device, one at a time. Not thread-safe.
class BatchSlot {
 public:
  virtual ~BatchSlot() = default;

  // Fills one result for each image and adds the run's statistics to `info`.
  // RESOURCE_EXHAUSTED if there is too little device memory; a smaller batch
  // may still succeed.
  virtual absl::Status Run(absl::Span<const model::ModelInput> images,
                           absl::Span<model::Result> results,
                           model::RunInfo* info) = 0;

  // Not OK once the device has failed permanently.
  virtual absl::Status health() const = 0;
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_BATCH_SLOT_H_
