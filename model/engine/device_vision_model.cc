#include "model/engine/device_vision_model.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/engine/device_context.h"
#include "model/engine/device_health.h"
#include "model/engine/device_runtime.h"
#include "model/engine/graph_plan.h"
#include "model/engine/guarded.h"
#include "model/engine/network.h"
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
        runtime_(runtime),
        gpus_(MakeGpus(config_, options_, runtime, weights)) {}

  int contexts() const override {
    return std::max(1, options_.slots_per_gpu) * static_cast<int>(gpus_.size());
  }

  std::string context_device(int index) const override {
    return absl::StrCat("cuda:", GpuOf(index).index);
  }

  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> MakeContext(
      int index) override {
    const Gpu& gpu = GpuOf(index);
    DeviceContext::Options context;
    context.type = ops::ComputeType(config_.precision);
    context.fold_rows = options_.fold_rows;
    context.graphs = options_.graphs;
    context.capture_failed = options_.capture_failed;
    std::unique_ptr<model::ExecutionContext> made;
    const absl::Status status = Guarded([&] {
      made = std::make_unique<DeviceContext>(gpu.network, config_, runtime_,
                                             gpu.index, &health_, context);
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
    return made;
  }

  absl::Status health() const override { return health_.status(); }
  const model::ModelConfig& config() const override { return config_; }
  model::Precision precision() const override { return config_.precision; }
  std::string device() const override {
    const std::string& name = gpus_[0]->device.name;
    return gpus_.size() == 1 ? name : absl::StrCat(gpus_.size(), " x ", name);
  }
  int fold_factor(int images) const override {
    // RunPixels() pads classifiers' batches unless a folding is requested.
    const bool padded = config_.task == model::VisionTask::kClassification &&
                        options_.fold_rows == 0;
    const int count = padded ? PaddedBatchSize(images) : images;
    const int sequences = static_cast<int>(gpus_[0]->network.Sequences(count));
    const int rows = options_.fold_rows > 0 ? options_.fold_rows : sequences;
    const std::vector<tuning::ScanShape> shapes =
        tuning::ScanShapes(config_, /*max_batch=*/1);
    if (shapes.empty()) return rows;  // There are only attention blocks.
    // The first stage with scans stands for all.
    tuning::ScanShape shape = shapes[0];
    shape.sequences = sequences;
    return gpus_[0]->chooser.Rows(shape, rows);
  }

 private:
  // The contexts' GPUs alternate, so that the first contexts are on different
  // GPUs.
  const Gpu& GpuOf(int context) const { return *gpus_[context % gpus_.size()]; }

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

  const model::ModelConfig config_;
  const model::ModelOptions options_;
  const DeviceRuntime& runtime_;
  const std::vector<std::unique_ptr<Gpu>> gpus_;
  DeviceHealth health_;
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
  std::unique_ptr<model::VisionModel> model;
  const absl::Status status = Guarded([&] {
    const absl::Status checked = CheckOptions(*runtime, options);
    if (!checked.ok()) return checked;
    runtime->ConfigureLibraries();
    model =
        std::make_unique<DeviceVisionModel>(config, options, *runtime, weights);
    return weights.Finish();
  });
  if (!status.ok()) return status;
  return model;
}

}  // namespace sfmamba::engine
