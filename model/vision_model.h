#ifndef SFMAMBA_MODEL_VISION_MODEL_H_
#define SFMAMBA_MODEL_VISION_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "model/config.h"
#include "model/prediction_options.h"
#include "model/result.h"

namespace sfmamba::tuning {
class ScanPlanTable;
}  // namespace sfmamba::tuning

namespace sfmamba::model {

// One input image, owned by the caller. Exactly one of the pointers is set. The
// memory is contiguous.
struct ModelInput {
  int height = 0;  // In pixels.
  int width = 0;
  const uint8_t* pixels = nullptr;  // [height, width, 3] RGB, not normalised.
  const float* values = nullptr;    // [3, height, width], normalised.

  // The size of the picture that the input was resized from. The dense heads'
  // results are in its pixels. 0 means the input's own size.
  int original_height = 0, original_width = 0;
  DetectionOptions detection;        // Used by detectors only.
  SegmentationOptions segmentation;  // Used by segmenters only.
};

struct ModelOptions {
  // Whether to run the reference implementation, slowly, in fp32 and on the
  // CPU. For tests.
  bool reference = false;
  // The rows that each stage's sequences are folded into (SF-Mamba's B1). 0
  // lets the device choose. Run() returns INVALID_ARGUMENT if they do not
  // divide the number of sequences.
  int fold_rows = 0;

  // The CUDA devices, each of which holds the whole model; empty means the CPU.
  std::vector<int> gpus;
  // The most batches that run concurrently on a GPU: one batch is copied while
  // another is computed. Each needs memory for its activations.
  int slots_per_gpu = 2;
  // On GPUs: whether kernels use a fixed order of operations. An image's result
  // is then bit-identical across batches, except inside cuBLAS and cuDNN.
  bool deterministic = false;
  // On GPUs in half precision: whether the MLPs' GELU is computed by erf in a
  // separate pass, not in its tanh form as part of the matrix product.
  bool exact_gelu = false;
  // On GPUs: measured scan plans from a ScanTuner, or null. Those of another
  // device are ignored.
  std::shared_ptr<const tuning::ScanPlanTable> scan_plans;
  // On GPUs: whether a classifier's batches replay recorded CUDA graphs. False
  // launches every kernel separately, for profilers.
  bool graphs = true;
  // Called with the error when a graph could not be recorded. Batches of that
  // size are then launched kernel by kernel, and recording is retried later.
  // Called on any thread; must not block.
  std::function<void(const absl::Status&)> capture_failed =
      [](const absl::Status&) {};
};

// Statistics of a run.
struct RunInfo {
  int padded_images = 0;  // The number of images computed, including padding.
  // The network's time without copies, by the GPU's clock. Zero on the CPU and
  // for dense models.
  absl::Duration device_time;
};

// A loaded model, which computes results from images.
//
// Run() may be called concurrently by up to slots() threads. On the CPU it uses
// libtorch's intra-op threads. An image's result does not depend on the other
// images in its batch; a NaN in one never reaches another.
class VisionModel {
 public:
  // Maps `weights_path` (safetensors), checks every tensor against `config` and
  // prepares it for the processor or GPU. A precision that the processor does
  // not support natively (on CPUs fp16, and bf16 without AMX) is replaced by
  // fp32; see precision().
  //
  // NOT_FOUND if there is no file. INVALID_ARGUMENT, naming each of them, for
  // missing, surplus, misshapen or mistyped tensors. INVALID_ARGUMENT also if
  // `gpus` is not empty and the build has no CUDA, a device does not exist or
  // `reference` is set.
  static absl::StatusOr<std::unique_ptr<VisionModel>> Load(
      const ModelConfig& config, const std::string& weights_path,
      const ModelOptions& options = {});

  // The same with random weights that are determined by `seed`, for trials and
  // benchmarks.
  static absl::StatusOr<std::unique_ptr<VisionModel>> Random(
      const ModelConfig& config, uint64_t seed,
      const ModelOptions& options = {});

  virtual ~VisionModel() = default;

  // Returns one result for each image, in order. INVALID_ARGUMENT unless all
  // images have the same size (or the same padded size, if the model pads),
  // which may differ from config().image_size. INTERNAL if libtorch fails; its
  // exceptions do not leave this function. If it succeeds, fills `info` unless
  // that is null.
  virtual absl::StatusOr<std::vector<Result>> Run(
      absl::Span<const ModelInput> images, RunInfo* info = nullptr) = 0;

  // Prepares for batches of `min_images` to `max_images`: allocates memory,
  // chooses algorithms and records graphs, which the first batches would do
  // otherwise. Takes seconds, during which Run() must not be called.
  // RESOURCE_EXHAUSTED if there is not enough memory for a single image. By
  // default there is nothing to prepare.
  virtual absl::Status Prepare(int /*max_images*/, int /*min_images*/ = 1) {
    return absl::OkStatus();
  }

  // Returns the number of batches that may run concurrently.
  virtual int slots() const { return 1; }

  // Not OK once the device has failed permanently, so that no Run() can
  // succeed.
  virtual absl::Status health() const { return absl::OkStatus(); }

  virtual const ModelConfig& config() const = 0;
  // Returns the precision that the model computes in.
  virtual Precision precision() const = 0;
  // Returns the device's name, such as "cpu (avx2)" or "NVIDIA H200".
  virtual std::string device() const = 0;
  // Returns the number of rows that the sequences of stage 3 are folded into
  // (SF-Mamba's B1) for a batch of `images` images of config().image_size. The
  // CPU runs images one by one, with each sequence in its own row, unless
  // fold_rows is set.
  virtual int fold_factor(int images) const = 0;
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_VISION_MODEL_H_
