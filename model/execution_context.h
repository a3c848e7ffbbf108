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

// One input image, owned by the caller. Exactly one of `pixels` and `values` is
// set. The memory is contiguous.
struct ModelInput {
  int height = 0;  // In pixels.
  int width = 0;
  // RGB, not normalised: [height, width, 3], or [3, height, width] if `planar`.
  const uint8_t* pixels = nullptr;
  const float* values = nullptr;  // [3, height, width], normalised.
  bool planar = false;
  // Whether `pixels` lie in memory from VisionModel::AllocateInputs(), which a
  // GPU reads directly. The CPU must copy other memory first.
  bool page_locked = false;

  // The size in pixels of the picture that the input was resized from.
  // Detections and segmentations are in pixels of this picture. 0 means the
  // input's own size.
  int original_height = 0, original_width = 0;
  PredictionOptions options;
};

// Statistics of a run.
struct RunInfo {
  int padded_images = 0;  // The number of images computed, including padding.
  // The time that the GPU needed for the network, without copies. Zero on the
  // CPU and for dense models (detectors and segmenters).
  absl::Duration device_time;
};

// The resources with which one thread runs batches of a model. On the CPU,
// these are the threads that compute with it. On a GPU, these are a stream,
// recorded graphs and pinned memory.
//
// An image's result does not depend on the other images in its batch. A NaN in
// one image never reaches another image.
//
// Must be made, used and destroyed by the same thread. Libraries keep handles,
// workspaces and chosen algorithms per thread, and a recorded graph may need
// them until it is destroyed.
class ExecutionContext {
 public:
  using Done = absl::FunctionRef<void(Result result)>;

  virtual ~ExecutionContext() = default;

  // Runs `images` as one batch. Calls `done` with each image's result, in the
  // order of the images and on this thread, as soon as the image is done.
  // `done` must not use this context. If Run() returns an error, `done` may
  // have been called for some of the first images. Fills `info` before the
  // first call of `done`.
  //
  // INVALID_ARGUMENT unless all images have the same size. If the model pads,
  // only the padded sizes must be equal. The size may differ from
  // ModelConfig::image_size. RESOURCE_EXHAUSTED if there is too little device
  // memory; a smaller batch may still succeed. INTERNAL if libtorch fails or
  // the device has failed permanently. No exception of libtorch leaves this
  // function.
  virtual absl::Status Run(absl::Span<const ModelInput> images, RunInfo* info,
                           Done done) = 0;

  // Runs one black image of this size. Returns the largest size, in bytes, that
  // its tensors had at once in the process's memory. Returns RESOURCE_EXHAUSTED
  // as soon as they would need more than `most_bytes`. `stop` is called before
  // each large tensor. Returns CANCELLED soon after `stop` has returned true.
  // If the model computes in the memory of a GPU, returns 0 without a run.
  virtual absl::StatusOr<int64_t> MeasureMemory(
      int /*height*/, int /*width*/, int64_t /*most_bytes*/,
      const std::function<bool()>& /*stop*/) {
    return 0;
  }

  // Prepares for batches of `min_images` to `max_images` images. It allocates
  // memory, chooses algorithms and records graphs, so that the first batches
  // need not do this. Takes seconds. While one context of a GPU prepares, the
  // others should be idle, because algorithms are chosen by their speed.
  // Returns Run()'s errors. The default implementation has nothing to prepare.
  virtual absl::Status Prepare(int /*min_images*/, int /*max_images*/) {
    return absl::OkStatus();
  }
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_EXECUTION_CONTEXT_H_
