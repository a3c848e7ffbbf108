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
  // Whether `pixels` point to memory from VisionModel::AllocateInputs(). A GPU
  // can read this memory directly. If false, the CPU must first copy the
  // pixels.
  bool page_locked = false;

  // The size of the original picture in pixels, before it was resized to the
  // input. The results of detection and segmentation are in pixels of this
  // picture. 0 means that the picture had the input's size.
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

// Runs batches of a model on one thread. It owns the resources for this. On the
// CPU, these are the threads that compute together with the calling one. On a
// GPU, these are a stream, recorded graphs and pinned memory.
//
// An image's result does not depend on the other images in its batch. A NaN in
// one image never affects another image.
//
// Must be made, used and destroyed by the same thread. Libraries hold handles,
// workspaces and chosen algorithms per thread. A recorded graph may need them
// until it is destroyed.
class ExecutionContext {
 public:
  using Done = absl::FunctionRef<void(Result result)>;

  virtual ~ExecutionContext() = default;

  // Runs `images` as one batch. Calls `done` on this thread with each image's
  // result, as soon as it is available and in the order of the images. `done`
  // must not use this context. If Run() returns an error, `done` may have been
  // called for the first few images. `info` is set before the first call of
  // `done`.
  //
  // Returns INVALID_ARGUMENT if the images differ in size. If the model pads,
  // only the padded sizes must be equal. The size may differ from
  // ModelConfig::image_size. Returns RESOURCE_EXHAUSTED if there is too little
  // device memory. A smaller batch may then still succeed. Returns INTERNAL if
  // libtorch fails or if the device has failed permanently. Does not throw
  // libtorch's exceptions.
  virtual absl::Status Run(absl::Span<const ModelInput> images, RunInfo* info,
                           Done done) = 0;

  // Runs one black image of this size. Returns the largest number of bytes that
  // the tensors of this run occupy at the same time in the process's memory.
  // Tensors of less than 1 MiB do not count. Returns RESOURCE_EXHAUSTED as soon
  // as the tensors would need more than `most_bytes` bytes. `stop` is called
  // before each counted tensor is made. If `stop` returns true, MeasureMemory()
  // soon returns CANCELLED. If the model computes on a GPU, returns 0 without a
  // run.
  virtual absl::StatusOr<int64_t> MeasureMemory(
      int /*height*/, int /*width*/, int64_t /*most_bytes*/,
      const std::function<bool()>& /*stop*/) {
    return 0;
  }

  // Returns how many images of a batch of `images` images are computed at the
  // same time. To get the memory that the batch needs, multiply the returned
  // number by the result of MeasureMemory().
  virtual int ImagesInMemory(int images) const { return images; }

  // Prepares for batches of `min_images` to `max_images` images. Allocates
  // memory, chooses algorithms and records graphs, so that the first batches
  // need not do this. Takes seconds. Meanwhile, the other contexts of the GPU
  // should be idle, because algorithms are chosen by their measured speed.
  // Returns Run()'s errors. The default implementation does nothing.
  virtual absl::Status Prepare(int /*min_images*/, int /*max_images*/) {
    return absl::OkStatus();
  }
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_EXECUTION_CONTEXT_H_
