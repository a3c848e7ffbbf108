#include "model/cuda_vision_model.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Context.h"
#include "ATen/cuda/CUDAContextLight.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "c10/core/InferenceMode.h"
#include "c10/cuda/CUDAGuard.h"
#include "kernels/scan_build_id.h"
#include "model/compute_type.h"
#include "model/cuda_slot.h"
#include "model/graph_plan.h"
#include "model/network.h"
#include "model/scan_planner.h"
#include "model/scan_shapes.h"
#include "model/slot_pool.h"
#include "model/slot_thread.h"

namespace sfmamba {
namespace {

// The weights on one GPU.
struct Gpu {
  Gpu(int gpu, ScanDevice scan_device, const ModelConfig& config,
      const ModelOptions& options, StateDict& weights)
      : index(gpu),
        name(scan_device.name),
        planner(std::move(scan_device), options.fold_table,
                options.deterministic),
        network(config,
                weights.root(
                    at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(gpu))),
                {/*fuse=*/true, config.precision, &planner}) {}

  const int index;
  const std::string name;
  const ScanPlanner planner;
  const Network network;
  absl::Mutex capturing;
};

ScanDevice DescribeGpu(int gpu) {
  const cudaDeviceProp* properties = at::cuda::getDeviceProperties(gpu);
  return {properties->name, properties->multiProcessorCount, ScanBuildId()};
}

class CudaVisionModel : public VisionModel {
 public:
  CudaVisionModel(const ModelConfig& config, const ModelOptions& options,
                  StateDict& weights)
      : config_(config),
        options_(options),
        gpus_(MakeGpus(config_, options_, weights)),
        pool_(MakeSlots(config_, options_, gpus_)) {}

  absl::StatusOr<std::vector<Result>> Run(
      absl::Span<const ModelInput> images) override {
    std::vector<Result> results(images.size());
    absl::Status status = gpus_[0]->network.Check(images, options_.fold_rows);
    if (status.ok()) status = pool_.Run(images, absl::MakeSpan(results));
    if (!status.ok()) return status;
    return results;
  }

  int slots() const override { return pool_.size(); }
  absl::Status health() const override { return pool_.health(); }
  const ModelConfig& config() const override { return config_; }
  Precision precision() const override { return config_.precision; }
  std::string device() const override {
    return gpus_.size() == 1
               ? gpus_[0]->name
               : absl::StrCat(gpus_.size(), " x ", gpus_[0]->name);
  }
  int fold_factor(int images) const override {
    const bool padded =
        config_.task == VisionTask::kClassification && options_.fold_rows == 0;
    const int count = padded ? GraphBucket(images) : images;
    const int sequences = static_cast<int>(gpus_[0]->network.Sequences(count));
    const int rows = options_.fold_rows > 0 ? options_.fold_rows : sequences;
    const std::vector<ScanShape> shapes = ScanShapes(config_, /*max_batch=*/1);
    if (shapes.empty()) return rows;  // Attention alone.
    ScanShape shape = shapes[0];
    shape.sequences = sequences;
    return gpus_[0]->planner.Rows(shape, rows);
  }

 private:
  static std::vector<std::unique_ptr<Gpu>> MakeGpus(const ModelConfig& config,
                                                    const ModelOptions& options,
                                                    StateDict& weights) {
    std::vector<std::unique_ptr<Gpu>> gpus;
    for (const int gpu : options.gpus) {
      const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(gpu));
      gpus.push_back(std::make_unique<Gpu>(gpu, DescribeGpu(gpu), config,
                                           options, weights));
      at::cuda::getCurrentCUDAStream().synchronize();  // Slots have others.
    }
    return gpus;
  }

  // The GPUs take turns, so that the first slots are on different ones.
  static std::vector<std::unique_ptr<BatchSlot>> MakeSlots(
      const ModelConfig& config, const ModelOptions& options,
      const std::vector<std::unique_ptr<Gpu>>& gpus) {
    std::vector<std::unique_ptr<BatchSlot>> slots;
    for (int i = 0; i < std::max(1, options.slots_per_gpu); ++i) {
      for (const std::unique_ptr<Gpu>& gpu : gpus) {
        slots.push_back(std::make_unique<SlotThread>([&] {
          return std::make_unique<CudaSlot>(
              gpu->network, config, ComputeType(config.precision),
              options.fold_rows, gpu->index, &gpu->capturing);
        }));
      }
    }
    return slots;
  }

  const ModelConfig config_;
  const ModelOptions options_;
  const std::vector<std::unique_ptr<Gpu>> gpus_;
  SlotPool pool_;
};

absl::Status CheckOptions(const ModelOptions& options) {
  const int count = at::cuda::device_count();
  for (const int gpu : options.gpus) {
    if (gpu < 0 || gpu >= count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "GPU ", gpu, ": expected one of the ", count, " that there are"));
    }
  }
  if (options.fuse) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the plain form of a model (fuse off) runs on the CPU only");
}

// A model keeps to fp32 where it says fp32, and to libraries' algorithms that
// suit its sizes or, deterministic, are fixed. These are libtorch's settings
// for the whole process.
void ConfigureLibraries(bool deterministic) {
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
  at::globalContext().setBenchmarkCuDNN(!deterministic);
  at::globalContext().setDeterministicCuDNN(deterministic);
}

}  // namespace

absl::StatusOr<std::unique_ptr<VisionModel>> MakeCudaVisionModel(
    const ModelConfig& config, StateDict& weights,
    const ModelOptions& options) {
  try {
    const c10::InferenceMode inference;
    absl::Status status = CheckOptions(options);
    if (!status.ok()) return status;
    ConfigureLibraries(options.deterministic);
    auto model = std::make_unique<CudaVisionModel>(config, options, weights);
    status = weights.Finish();
    if (!status.ok()) return status;
    return model;
  } catch (const c10::OutOfMemoryError& error) {
    return absl::ResourceExhaustedError(error.what_without_backtrace());
  } catch (const c10::Error& error) {
    return absl::InternalError(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace sfmamba
