#ifndef SFMAMBA_MODEL_VISION_MODEL_H_
#define SFMAMBA_MODEL_VISION_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/config.h"
#include "model/execution_context.h"
#include "model/processor_group.h"

namespace sfmamba::tuning {
class ScanPlanTable;
}  // namespace sfmamba::tuning

namespace sfmamba::model {

struct ModelOptions {
  // Whether to run the reference implementation, slowly, in fp32 and on the
  // CPU. For tests.
  bool reference = false;
  // The rows that each stage's sequences are folded into (SF-Mamba's B1). 0
  // lets the device choose. A run returns INVALID_ARGUMENT if they do not
  // divide the number of sequences.
  int fold_rows = 0;

  // On the CPU: the processors of each context, which should be disjoint; all
  // contexts share the weights. Empty: one context, on any processor, with as
  // many threads as SetComputeThreads() says.
  std::vector<ProcessorGroup> processor_groups;

  // The CUDA devices, each of which holds the whole model; empty means the CPU.
  std::vector<int> gpus;
  // The number of contexts on each GPU: one batch is copied while another is
  // computed. Each needs memory for its activations.
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

// A loaded model, which hands out the contexts that compute results from
// images.
//
// Thread-safe. Must outlive its contexts.
class VisionModel {
 public:
  // Reads `weights_paths` (safetensors files that together hold each tensor
  // once), checks every tensor against `config` and prepares it for the
  // processor or GPU. A precision that the processor does
  // not support natively (on CPUs fp16, bf16 without AVX512-BF16, and int8
  // without AVX512-VNNI or AVX-VNNI) is replaced by fp32; see precision().
  //
  // NOT_FOUND if a file is missing. INVALID_ARGUMENT, naming each of them, for
  // missing, surplus, misshapen or mistyped tensors. INVALID_ARGUMENT also if
  // `gpus` is not empty and the build has no CUDA, a device does not exist, the
  // precision is int8 or `reference` is set.
  static absl::StatusOr<std::unique_ptr<VisionModel>> Load(
      const ModelConfig& config, absl::Span<const std::string> weights_paths,
      const ModelOptions& options = {});

  // Makes a model with random weights that are determined by `seed`, for trials
  // and benchmarks.
  static absl::StatusOr<std::unique_ptr<VisionModel>> Random(
      const ModelConfig& config, uint64_t seed,
      const ModelOptions& options = {});

  virtual ~VisionModel() = default;

  // Returns the number of batches that may run concurrently, each in a context
  // of its own.
  virtual int contexts() const = 0;

  // Makes a context for the calling thread. Contexts of different `index` below
  // contexts() are spread over the GPUs, or over the groups of processors, on
  // which the thread then stays until the context is destroyed.
  // RESOURCE_EXHAUSTED or INTERNAL if the device refuses.
  virtual absl::StatusOr<std::unique_ptr<ExecutionContext>> MakeContext(
      int index) = 0;

  // Returns memory for `bytes` bytes of inputs, not cleared. It is page-locked
  // if the model is on GPUs. Null if there is too little.
  virtual std::shared_ptr<uint8_t> AllocateInputs(int64_t bytes) const {
    return std::shared_ptr<uint8_t>(new (std::nothrow) uint8_t[bytes],
                                    std::default_delete<uint8_t[]>());
  }

  // Returns what context `index` runs on, such as "cpu", "cpu:1" (one of
  // several groups of processors) or "cuda:0". Contexts of all models with the
  // same name share it.
  virtual std::string context_device(int index) const = 0;

  // Not OK once the device has failed permanently, so that no Run() of a
  // context can succeed. Of several GPUs all must have failed: until then the
  // contexts of a failed one run on the others.
  virtual absl::Status health() const { return absl::OkStatus(); }

  virtual const ModelConfig& config() const = 0;
  // Returns the precision that the model computes in.
  virtual Precision precision() const = 0;
  // Returns the device's name, such as "cpu (avx2)", "NVIDIA H200" or "8 x
  // NVIDIA H200", of which the GPUs that have failed are not counted.
  virtual std::string device() const = 0;
  // Returns the number of rows that the sequences of the first token stage are
  // folded into (SF-Mamba's B1) for a batch of `images` images of
  // config().image_size. The
  // CPU runs images one by one, with each sequence in its own row, unless
  // fold_rows is set.
  virtual int fold_factor(int images) const = 0;
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_VISION_MODEL_H_
