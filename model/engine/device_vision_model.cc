#include "model/engine/device_vision_model.h"

#include <algorithm>
#include <functional>
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
  // The inputs of a dense model have many sizes. A search for the fastest
  // algorithm for each size would take longer than it saves.
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
  DeviceHealth health;
};

using Gpus = std::vector<std::unique_ptr<Gpu>>;

// Returns the index of the first working GPU. Begins the search at `index` and
// wraps around. Returns nullopt if all GPUs have failed.
std::optional<int> WorkingGpu(const Gpus& gpus, int index) {
  const int count = static_cast<int>(gpus.size());
  for (int i = 0; i < count; ++i) {
    const int next = (index + i) % count;
    if (gpus[next]->health.status().ok()) return next;
  }
  return std::nullopt;
}

// Runs batches on one of the model's GPUs. If this GPU fails permanently,
// continues on the next GPU that works. CUDA's permanent errors affect only one
// GPU, so the others can still be used.
class MovingContext : public model::ExecutionContext {
 public:
  using Context = absl::StatusOr<std::unique_ptr<ExecutionContext>>;
  using Make = std::function<Context(int gpu)>;

  // `first` is the context on the GPU with index `gpu`. `make` makes contexts
  // on other GPUs. Indices refer to `gpus`.
  MovingContext(const Gpus& gpus, int gpu,
                std::unique_ptr<ExecutionContext> first, Make make)
      : gpus_(gpus), gpu_(gpu), make_(std::move(make)) {
    contexts_.push_back(std::move(first));
  }

  absl::Status Run(absl::Span<const model::ModelInput> images,
                   model::RunInfo* info, Done done) override {
    // A GPU that fails during a batch has not called `done` for any image.
    // Therefore the whole batch can run again on another GPU.
    return Try([&] { return contexts_.back()->Run(images, info, done); });
  }
  absl::Status Prepare(int min_images, int max_images) override {
    return Try(
        [&] { return contexts_.back()->Prepare(min_images, max_images); });
  }

 private:
  absl::Status Try(const std::function<absl::Status()>& run) {
    absl::Status status = run();
    while (!status.ok() && !gpus_[gpu_]->health.status().ok()) {
      const std::optional<int> next = WorkingGpu(gpus_, gpu_);
      if (!next.has_value()) return status;
      Context moved = make_(*next);
      if (!moved.ok()) return moved.status();
      contexts_.push_back(*std::move(moved));
      gpu_ = *next;
      status = run();
    }
    return status;
  }

  const Gpus& gpus_;
  int gpu_;
  const Make make_;
  // Only the last context is used. The GPUs of the other contexts have failed,
  // so the contexts' memory there cannot be freed.
  std::vector<std::unique_ptr<ExecutionContext>> contexts_;
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
    const int asked = index % static_cast<int>(gpus_.size());
    const int gpu = WorkingGpu(gpus_, asked).value_or(asked);
    auto made = MakeOn(gpu);
    if (!made.ok() || gpus_.size() == 1) return made;
    return std::make_unique<MovingContext>(
        gpus_, gpu, *std::move(made), [this](int gpu) { return MakeOn(gpu); });
  }

  std::shared_ptr<uint8_t> AllocateInputs(int64_t bytes) const override {
    std::shared_ptr<uint8_t> memory;
    Guarded([&] {
      memory = runtime_.AllocateHost(gpus_[0]->index, bytes);
      return absl::OkStatus();
    }).IgnoreError();  // If this fails, the result is null.
    return memory;
  }

  absl::Status health() const override {
    if (WorkingGpu(gpus_, 0).has_value()) return absl::OkStatus();
    return gpus_[0]->health.status();
  }
  const model::ModelConfig& config() const override { return config_; }
  model::Precision precision() const override { return config_.precision; }
  std::string device() const override {
    const std::string& name = gpus_[0]->device.name;
    if (gpus_.size() == 1) return name;
    const auto working = std::count_if(
        gpus_.begin(), gpus_.end(),
        [](const auto& gpu) { return gpu->health.status().ok(); });
    return absl::StrCat(working, " x ", name);
  }
  int fold_factor(int images) const override {
    // DeviceContext pads classifiers' batches unless a folding is requested.
    const bool padded = config_.task == model::VisionTask::kClassification &&
                        options_.fold_rows == 0;
    const int count = padded ? PaddedBatchSize(images) : images;
    const int sequences = static_cast<int>(gpus_[0]->network.Sequences(count));
    const int rows = options_.fold_rows > 0 ? options_.fold_rows : sequences;
    const std::vector<tuning::ScanShape> shapes =
        tuning::ScanShapes(config_, /*max_batch=*/1);
    if (shapes.empty()) return rows;  // There are no scans to fold.
    // The first shape belongs to the first stage that has scans.
    tuning::ScanShape shape = shapes[0];
    shape.sequences = sequences;
    return gpus_[0]->chooser.Rows(shape, rows);
  }

 private:
  // Neighbouring contexts are on different GPUs.
  const Gpu& GpuOf(int context) const { return *gpus_[context % gpus_.size()]; }

  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> MakeOn(int index) {
    Gpu& gpu = *gpus_[index];
    DeviceContext::Options context;
    context.type = ops::ComputeType(config_.precision);
    context.fold_rows = options_.fold_rows;
    context.graphs = options_.graphs;
    context.capture_failed = options_.capture_failed;
    std::unique_ptr<model::ExecutionContext> made;
    const absl::Status status = Guarded([&] {
      made = std::make_unique<DeviceContext>(gpu.network, config_, runtime_,
                                             gpu.index, &gpu.health, context);
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
    return made;
  }

  static Gpus MakeGpus(const model::ModelConfig& config,
                       const model::ModelOptions& options,
                       const DeviceRuntime& runtime,
                       weights::StateDict& weights) {
    Gpus gpus;
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
  const Gpus gpus_;
};

absl::Status CheckOptions(const DeviceRuntime& runtime,
                          const model::ModelConfig& config,
                          const model::ModelOptions& options) {
  const int count = runtime.count();
  for (const int gpu : options.gpus) {
    if (gpu < 0 || gpu >= count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "GPU ", gpu, ": expected one of the ", count, " that there are"));
    }
  }
  if (config.precision == model::Precision::kInt8) {
    return absl::InvalidArgumentError(
        "precision: GPUs do not compute INT8, expected FP32, BF16 or FP16");
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
    const absl::Status checked = CheckOptions(*runtime, config, options);
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
