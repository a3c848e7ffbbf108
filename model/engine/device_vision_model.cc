#include "model/engine/device_vision_model.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "c10/core/InferenceMode.h"
#include "kernels/cuda/capture_mutex.h"
#include "model/engine/device_runtime.h"
#include "model/engine/device_slot.h"
#include "model/engine/graph_plan.h"
#include "model/engine/network.h"
#include "model/engine/slot_pool.h"
#include "model/engine/slot_thread.h"
#include "model/engine/torch_errors.h"
#include "model/engine/warm_up_input.h"
#include "model/ops/compute_type.h"
#include "model/ops/cuda/cuda_implementation.h"
#include "model/tuning/model_scans.h"
#include "model/tuning/scan_plan_chooser.h"

namespace sfmamba::engine {
namespace {

ops::ConvSearch SearchOf(const model::ModelConfig& config,
                         const model::ModelOptions& options) {
  if (options.deterministic) return ops::ConvSearch::kFixed;
  // A dense model's inputs have many sizes. A search for each would cost more
  // than it saves.
  return config.task == model::VisionTask::kClassification
             ? ops::ConvSearch::kMeasure
             : ops::ConvSearch::kGuess;
}

std::optional<tuning::ScanPlanTable> PlansOf(
    const model::ModelOptions& options) {
  if (options.scan_plans == nullptr) return std::nullopt;
  return *options.scan_plans;
}

// The network on one GPU.
struct Gpu {
  Gpu(int gpu, const DeviceRuntime& runtime, const model::ModelConfig& config,
      const model::ModelOptions& options, weights::StateDict& weights)
      : index(gpu),
        device(runtime.Describe(gpu)),
        chooser(device, PlansOf(options), options.deterministic),
        implementation(runtime.ops(), runtime.device(gpu),
                       {config.precision, &chooser, SearchOf(config, options),
                        options.exact_gelu}),
        network(config, weights.root(runtime.device(gpu)), implementation) {}

  const int index;
  const tuning::ScanDevice device;
  const tuning::ScanPlanChooser chooser;
  const ops::CudaImplementation implementation;
  const Network network;
};

class DeviceVisionModel : public model::VisionModel {
 public:
  DeviceVisionModel(const model::ModelConfig& config,
                    const model::ModelOptions& options,
                    const DeviceRuntime& runtime, weights::StateDict& weights)
      : config_(config),
        options_(options),
        gpus_(MakeGpus(config_, options_, runtime, weights)),
        pool_(MakeSlots(config_, options_, runtime, gpus_)) {}

  absl::StatusOr<std::vector<model::Result>> Run(
      absl::Span<const model::ModelInput> images,
      model::RunInfo* info) override {
    std::vector<model::Result> results(images.size());
    model::RunInfo own;
    absl::Status status = gpus_[0]->network.Check(images, options_.fold_rows);
    if (status.ok()) status = pool_.Run(images, absl::MakeSpan(results), &own);
    if (!status.ok()) return status;
    if (info != nullptr) *info = own;
    return results;
  }

  absl::Status Prepare(int max_images, int min_images) override {
    const WarmUpInput input(config_);
    if (config_.task != model::VisionTask::kClassification) {
      return pool_.RunInEachSlot(input.Batch(1));
    }
    // The largest batch comes first, so that memory is reserved once.
    for (const int images : PaddedBatchSizes(max_images)) {
      if (images < min_images) break;
      if (options_.fold_rows > 0 &&
          gpus_[0]->network.Sequences(images) % options_.fold_rows != 0) {
        continue;
      }
      const absl::Status status = pool_.RunInEachSlot(input.Batch(images));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  int slots() const override { return pool_.size(); }
  absl::Status health() const override { return pool_.health(); }
  const model::ModelConfig& config() const override { return config_; }
  model::Precision precision() const override { return config_.precision; }
  std::string device() const override {
    const std::string& name = gpus_[0]->device.name;
    return gpus_.size() == 1 ? name : absl::StrCat(gpus_.size(), " x ", name);
  }
  int fold_factor(int images) const override {
    const bool padded = config_.task == model::VisionTask::kClassification &&
                        options_.fold_rows == 0;
    const int count = padded ? PaddedBatchSize(images) : images;
    const int sequences = static_cast<int>(gpus_[0]->network.Sequences(count));
    const int rows = options_.fold_rows > 0 ? options_.fold_rows : sequences;
    const std::vector<tuning::ScanShape> shapes =
        tuning::ScanShapes(config_, /*max_batch=*/1);
    if (shapes.empty()) return rows;  // There are only attention blocks.
    tuning::ScanShape shape = shapes[0];
    shape.sequences = sequences;
    return gpus_[0]->chooser.Rows(shape, rows);
  }

 private:
  static std::vector<std::unique_ptr<Gpu>> MakeGpus(
      const model::ModelConfig& config, const model::ModelOptions& options,
      const DeviceRuntime& runtime, weights::StateDict& weights) {
    std::vector<std::unique_ptr<Gpu>> gpus;
    for (const int gpu : options.gpus) {
      runtime.Load(gpu, [&] {
        gpus.push_back(
            std::make_unique<Gpu>(gpu, runtime, config, options, weights));
      });
    }
    return gpus;
  }

  // The slots' GPUs alternate, so that the first slots are on different GPUs.
  static std::vector<std::unique_ptr<BatchSlot>> MakeSlots(
      const model::ModelConfig& config, const model::ModelOptions& options,
      const DeviceRuntime& runtime,
      const std::vector<std::unique_ptr<Gpu>>& gpus) {
    DeviceSlot::Options slot;
    slot.type = ops::ComputeType(config.precision);
    slot.fold_rows = options.fold_rows;
    slot.graphs = options.graphs;
    slot.capture_failed = options.capture_failed;
    std::vector<std::unique_ptr<BatchSlot>> slots;
    for (int i = 0; i < std::max(1, options.slots_per_gpu); ++i) {
      for (const std::unique_ptr<Gpu>& gpu : gpus) {
        slots.push_back(std::make_unique<SlotThread>([&] {
          return std::make_unique<DeviceSlot>(
              gpu->network, config, runtime.MakeStream(gpu->index),
              runtime.device(gpu->index), &kernels::CaptureMutex(gpu->index),
              slot);
        }));
      }
    }
    return slots;
  }

  const model::ModelConfig config_;
  const model::ModelOptions options_;
  const std::vector<std::unique_ptr<Gpu>> gpus_;
  SlotPool pool_;
};

absl::Status CheckOptions(const DeviceRuntime& runtime,
                          const model::ModelOptions& options) {
  const int count = runtime.count();
  for (const int gpu : options.gpus) {
    if (gpu < 0 || gpu >= count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "GPU ", gpu, ": expected one of the ", count, " that there are"));
    }
  }
  if (!options.reference) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the reference implementation runs on the CPU only");
}

}  // namespace

absl::StatusOr<std::unique_ptr<model::VisionModel>> MakeDeviceVisionModel(
    const model::ModelConfig& config, weights::StateDict& weights,
    const model::ModelOptions& options) {
  const DeviceRuntime* const runtime = Devices();
  if (runtime == nullptr) {
    return absl::InvalidArgumentError(
        "GPUs were asked for, but this build has no CUDA: it needs "
        "--config=cuda");
  }
  try {
    const c10::InferenceMode inference;
    absl::Status status = CheckOptions(*runtime, options);
    if (!status.ok()) return status;
    runtime->ConfigureLibraries();
    auto model =
        std::make_unique<DeviceVisionModel>(config, options, *runtime, weights);
    status = weights.Finish();
    if (!status.ok()) return status;
    return model;
  } catch (...) {
    return CaughtError();
  }
}

}  // namespace sfmamba::engine
