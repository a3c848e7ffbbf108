#ifndef SFMAMBA_MODEL_EXECUTION_CONTEXT_H_
#define SFMAMBA_MODEL_EXECUTION_CONTEXT_H_

#include <cstdint>
#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "model/prediction_options.h"
#include "model/result.h"

namespace sfmamba::model {

// One input image, owned by the caller. Exactly one of the pointers is set. The
// memory is contiguous.
struct ModelInput {
  int height = 0;  // In pixels.
  int width = 0;
  // RGB, not normalised: [height, width, 3], or [3, height, width] if `planar`.
  const uint8_t* pixels = nullptr;
  const float* values = nullptr;  // [3, height, width], normalised.
  bool planar = false;
  // Whether `pixels` lie in memory of VisionModel::AllocateInputs(), which a
  // GPU reads by itself. Other memory is copied by the processor first.
  bool page_locked = false;

  // The size of the picture that the input was resized from. The dense heads'
  // results are in its pixels. 0 means the input's own size.
  int original_height = 0, original_width = 0;
  PredictionOptions options;
};

// Statistics of a run.
struct RunInfo {
  int padded_images = 0;  // The number of images computed, including padding.
  // The network's time without copies, by the GPU's clock. Zero on the CPU and
  // for dense models.
  absl::Duration device_time;
};

// What one thread needs to run batches of a model: on the CPU threads that
// compute with it, on a GPU a stream, recorded graphs and pinned memory.
//
// An image's result does not depend on the other images in its batch; a NaN in
// one never reaches another.
//
// Must be made, used and destroyed by the same thread, since libraries keep
// handles, workspaces and chosen algorithms per thread, and a recorded graph
// may need them as long as it lives.
class ExecutionContext {
 public:
  using Done = absl::FunctionRef<void(Result result)>;

  virtual ~ExecutionContext() = default;

  // Runs `images` as one batch. Calls `done` with each image's result, in the
  // order of the images and on this thread, as soon as the image is done. If it
  // returns an error, `done` was called for the first images or for none.
  // `done` must not use this context. Fills `info` before the first call.
  //
  // INVALID_ARGUMENT unless all images have the same size (or the same padded
  // size, if the model pads), which may differ from ModelConfig::image_size.
  // RESOURCE_EXHAUSTED if there is too little device memory; a smaller batch
  // may still succeed. INTERNAL if libtorch fails; its exceptions do not leave
  // this function. INTERNAL once the device has failed permanently.
  virtual absl::Status Run(absl::Span<const ModelInput> images, RunInfo* info,
                           Done done) = 0;

  // Runs one black image of this size and returns the most bytes that its
  // tensors had at once in the process's memory. RESOURCE_EXHAUSTED as soon as
  // they would need more than `most_bytes`, CANCELLED soon after `stop` has
  // returned true: it is asked before each large tensor. Returns 0 without a
  // run if the model computes in the memory of a GPU.
  virtual absl::StatusOr<int64_t> MeasureMemory(
      int /*height*/, int /*width*/, int64_t /*most_bytes*/,
      const std::function<bool()>& /*stop*/) {
    return 0;
  }

  // Prepares for batches of `min_images` to `max_images`: allocates memory,
  // chooses algorithms and records graphs, which the first batches would do
  // otherwise. Takes seconds. While one context of a GPU prepares, the others
  // should be idle, because algorithms are chosen by their speed. Returns
  // Run()'s errors. By default there is nothing to prepare.
  virtual absl::Status Prepare(int /*min_images*/, int /*max_images*/) {
    return absl::OkStatus();
  }
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_EXECUTION_CONTEXT_H_
