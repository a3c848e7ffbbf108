#ifndef SFMAMBA_MODEL_VISION_MODEL_H_
#define SFMAMBA_MODEL_VISION_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "model/config.h"
#include "model/prediction_options.h"
#include "model/result.h"
#include "model/tuning/scan_plan_table.h"

namespace sfmamba::model {

// One image as the model takes it, owned by the caller. Exactly one pointer is
// set; rows are tight.
struct ModelInput {
  int height = 0;  // Pixels.
  int width = 0;
  const uint8_t* pixels = nullptr;  // [height, width, 3] RGB, to be normalised.
  const float* values = nullptr;    // [3, height, width], normalised already.

  // The picture that the input was resized from, in whose pixels the dense
  // heads answer; 0: the input itself.
  int original_height = 0, original_width = 0;
  DetectionOptions detection;        // Read by detectors alone,
  SegmentationOptions segmentation;  // and by segmenters.
};

struct ModelOptions {
  // Load-time rewrites (BatchNorm into convolutions, packed weights, fast
  // kernels). False keeps the plain form, for tests.
  bool fuse = true;
  // Rows that the sequences of a stage are folded into (B1); 0: the fallback
  // for this device. Must divide the number of sequences, else
  // INVALID_ARGUMENT.
  int fold_rows = 0;

  // CUDA devices that the model is loaded on, each whole; none: the CPU.
  std::vector<int> gpus;
  // Batches that may be on their way through one GPU at a time: while one
  // computes the next is copied. Each takes memory for its activations.
  int slots_per_gpu = 2;
  // On GPUs: kernels whose order of operations is fixed, so that an image's
  // answer does not depend on the batch in any bit of ours.
  bool deterministic = false;
  // On GPUs in half precision: GELU of MLPs by erf in a pass of its own,
  // instead of its tanh form in the matrix product.
  bool exact_gelu = false;
  // On GPUs: measured scan plans, if there are any. Those of another device are
  // passed over.
  std::optional<tuning::ScanPlanTable> scan_plans;
  // On GPUs: a classifier's batches are replays of recorded graphs. False: each
  // is launched kernel by kernel, to be looked at with a profiler.
  bool graphs = true;
  // Told of each graph that could not be recorded; its batches run kernel by
  // kernel, and recording is tried again after a while. Called on any thread;
  // must not block.
  std::function<void(const absl::Status&)> capture_failed =
      [](const absl::Status&) {};
};

// What a run was besides its results.
struct RunInfo {
  int padded_images = 0;  // Images that were computed, padding included.
  // The network's time by a GPU's own clock, without copies; zero on the CPU
  // and for dense models.
  absl::Duration device_time;
};

// A loaded model: images in, results out.
//
// Run() may be called by slots() threads at a time; on the CPU it uses
// libtorch's intra-op threads. An image's result does not depend on its batch
// mates: a NaN in one never reaches another.
class VisionModel {
 public:
  // Maps `weights_path` (safetensors), checks every tensor against `config` and
  // prepares it for this processor. NOT_FOUND if there is no file;
  // INVALID_ARGUMENT naming each missing, surplus, misshapen or mistyped
  // tensor, or if there are `gpus` and no CUDA in this build, no such device or
  // fuse is off. A precision that the processor does not compute natively (on
  // the CPU fp16 always, bf16 mostly) is converted to fp32; precision() tells.
  static absl::StatusOr<std::unique_ptr<VisionModel>> Load(
      const ModelConfig& config, const std::string& weights_path,
      const ModelOptions& options = {});

  // The same with random weights that follow from `seed`, for trials and
  // benchmarks.
  static absl::StatusOr<std::unique_ptr<VisionModel>> Random(
      const ModelConfig& config, uint64_t seed,
      const ModelOptions& options = {});

  virtual ~VisionModel() = default;

  // One result for each image, in order. All images must have one size (of a
  // model that pads, one padded size), which may differ from
  // config().image_size; else INVALID_ARGUMENT. INTERNAL for a
  // failure of the library below (its exceptions end here). Fills `info`, if it
  // is not null, when it succeeds.
  virtual absl::StatusOr<std::vector<Result>> Run(
      absl::Span<const ModelInput> images, RunInfo* info = nullptr) = 0;

  // Does for batches of `min_images` to `max_images` what else the first of
  // them would: allocates, chooses algorithms, records graphs, one slot after
  // another while nothing else runs. Takes seconds. RESOURCE_EXHAUSTED if there
  // is no memory for a single image. By default there is nothing to do.
  virtual absl::Status Prepare(int /*max_images*/, int /*min_images*/ = 1) {
    return absl::OkStatus();
  }

  // Batches that may run at a time.
  virtual int slots() const { return 1; }

  // Not OK once the device has failed for good: no later Run() can succeed.
  virtual absl::Status health() const { return absl::OkStatus(); }

  virtual const ModelConfig& config() const = 0;
  // What the model computes in.
  virtual Precision precision() const = 0;
  // Such as "cpu (avx2)" or "NVIDIA H200".
  virtual std::string device() const = 0;
  // Rows that the sequences of stage 3 lie in (SF-Mamba's B1) when `images`
  // images of config().image_size come together. The CPU runs them one by one,
  // each sequence in a row of its own, unless fold_rows says otherwise.
  virtual int fold_factor(int images) const = 0;
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_VISION_MODEL_H_
