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
  // Whether to run the reference implementation, which is slow and computes in
  // fp32 on the CPU. Only tests use it.
  bool reference = false;
  // The number of rows into which each stage's sequences are folded (SF-Mamba's
  // B1). If 0, the device chooses the number. A run returns INVALID_ARGUMENT if
  // this number does not divide the number of sequences.
  int fold_rows = 0;

  // On the CPU, one context is made for each of these groups of CPUs. The
  // groups should be disjoint. All contexts share the weights. If this is
  // empty, there is one context, which uses any CPUs and the number of threads
  // of SetComputeThreads().
  std::vector<ProcessorGroup> processor_groups;

  // The CUDA devices to run on. Each holds the whole model. If empty, the model
  // runs on the CPU.
  std::vector<int> gpus;
  // The number of contexts on each GPU. If there are two, one batch is copied
  // while another is computed. Each context needs memory for its activations.
  int slots_per_gpu = 2;
  // On GPUs, whether kernels use a fixed order of operations. An image's result
  // is then bit-identical in every batch, except for what cuBLAS and cuDNN
  // compute.
  bool deterministic = false;
  // On GPUs in half precision, whether GELU is computed in its erf form, in a
  // separate pass. If false, GELU is computed in its tanh form as part of the
  // matrix product.
  bool exact_gelu = false;
  // On GPUs, the measured scan plans of a ScanTuner, or null. Plans for another
  // device are ignored.
  std::shared_ptr<const tuning::ScanPlanTable> scan_plans;
  // On GPUs, whether a classifier's batches replay recorded CUDA graphs. If
  // false, every kernel is launched separately, for example for a profiler.
  bool graphs = true;
  // Called with the error if a graph could not be recorded. Batches of the
  // graph's size are then launched kernel by kernel, and recording is retried
  // later. May be called on any thread. Must not block.
  std::function<void(const absl::Status&)> capture_failed =
      [](const absl::Status&) {};
};

// A loaded model. It makes the contexts that compute results from images.
//
// Thread-safe. Must outlive its contexts.
class VisionModel {
 public:
  // Loads a model from `weights_paths`, safetensors files that together contain
  // each tensor once. Checks every tensor against `config` and prepares it for
  // the CPU or GPU. If the CPU cannot compute in the configured precision, the
  // model computes in fp32 instead, see precision(). On CPUs, fp16 is always
  // replaced. bf16 is replaced if the CPU lacks AVX512-BF16. int8 is replaced
  // if the CPU has neither AVX512-VNNI nor AVX-VNNI.
  //
  // Returns NOT_FOUND if a file is missing. Returns INVALID_ARGUMENT, with up
  // to 20 tensors' names, if tensors are missing, surplus, not finite, or of
  // the wrong shape or type. If `gpus` is not empty, also returns
  // INVALID_ARGUMENT if the build has no CUDA, if a device does not exist, if
  // the precision is int8, or if `reference` is set.
  static absl::StatusOr<std::unique_ptr<VisionModel>> Load(
      const ModelConfig& config, absl::Span<const std::string> weights_paths,
      const ModelOptions& options = {});

  // Makes a model with random weights, which depend only on `seed` and the
  // tensors' names. This is for trials and benchmarks.
  static absl::StatusOr<std::unique_ptr<VisionModel>> Random(
      const ModelConfig& config, uint64_t seed,
      const ModelOptions& options = {});

  virtual ~VisionModel() = default;

  // Returns the number of batches that may run at the same time, each in its
  // own context.
  virtual int contexts() const = 0;

  // Makes a context for the calling thread. `index` must be below contexts().
  // The contexts are spread over the GPUs or over the groups of CPUs. If there
  // are groups, the thread runs only on its group until the context is
  // destroyed. Returns RESOURCE_EXHAUSTED or INTERNAL if the device cannot make
  // a context.
  virtual absl::StatusOr<std::unique_ptr<ExecutionContext>> MakeContext(
      int index) = 0;

  // Allocates `bytes` bytes for inputs, which are not cleared. If the model is
  // on GPUs, the memory is pinned. Returns null if there is too little memory.
  virtual std::shared_ptr<uint8_t> AllocateInputs(int64_t bytes) const {
    return std::shared_ptr<uint8_t>(new (std::nothrow) uint8_t[bytes],
                                    std::default_delete<uint8_t[]>());
  }

  // Returns the name of the device of context `index`, such as "cpu", "cpu:1"
  // (one of several groups of CPUs) or "cuda:0". Contexts with the same name
  // share the device, even if they belong to different models.
  virtual std::string context_device(int index) const = 0;

  // Returns an error if the device has failed permanently, so that no Run() can
  // succeed. If there are several GPUs, returns an error only if all of them
  // have failed. Until then, the contexts of a failed GPU run on the others.
  virtual absl::Status health() const { return absl::OkStatus(); }

  virtual const ModelConfig& config() const = 0;
  // Returns the precision that the model computes in.
  virtual Precision precision() const = 0;
  // Returns the device's name, such as "cpu (avx2)", "NVIDIA H200" or "8 x
  // NVIDIA H200". GPUs that have failed are not counted.
  virtual std::string device() const = 0;
  // Returns the number of rows into which the sequences of the first token
  // stage are folded (SF-Mamba's B1). The batch has `images` images of size
  // config().image_size. The CPU runs images one by one, with each sequence in
  // its own row, unless fold_rows is set.
  virtual int fold_factor(int images) const = 0;
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_VISION_MODEL_H_
