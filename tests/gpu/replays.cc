#include "tests/gpu/replays.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "kernels/cuda/capture_mutex.h"
#include "model/engine/device_runtime.h"
#include "model/engine/guarded.h"
#include "model/engine/network.h"
#include "model/ops/compute_type.h"
#include "model/ops/cuda/cuda_implementation.h"
#include "model/tuning/scan_plan_chooser.h"
#include "model/weights/random_weights.h"
#include "model/weights/state_dict.h"

namespace sfmamba {
namespace {

constexpr int kGpu = 0;
constexpr int kFewReplays = 3;  // Enough to learn the time of one.
constexpr int kTinyReplays = 2;

// A model with random weights on the GPU, made like the engine's models.
struct Model {
  Model(const model::ModelConfig& config, const model::ModelOptions& options,
        weights::StateDict& weights)
      : config(config),
        runtime(*engine::Devices()),
        chooser(runtime.Describe(kGpu),
                options.scan_plans == nullptr
                    ? std::nullopt
                    : std::make_optional(*options.scan_plans),
                /*deterministic=*/false),
        implementation(runtime.ops(), runtime.device(kGpu),
                       {config.precision, &chooser, ops::ConvSearch::kMeasure,
                        options.exact_gelu}),
        network(config, weights.root(runtime.device(kGpu)), implementation) {}

  const model::ModelConfig config;
  const engine::DeviceRuntime& runtime;
  const tuning::ScanPlanChooser chooser;
  const ops::CudaImplementation implementation;
  const engine::Network network;
};

// A recorded run of the network over `count` noise pictures. Must be made, used
// and destroyed by the same thread, in inference mode. Methods throw
// c10::Error.
class Pass {
 public:
  Pass(const Model& model, int count)
      : model_(model),
        count_(count),
        stream_(model.runtime.MakeStream(kGpu)),
        scope_(stream_->Enter()) {
    const int side = model.config.image_size;
    const int64_t bytes = int64_t{3} * side * side * count;
    pixels_ = stream_->AllocateHost(bytes, at::kByte);
    uint32_t state = 1;
    for (int64_t i = 0; i < bytes; ++i) {
      state = state * 1664525 + 1013904223;
      pixels_.mutable_data_ptr<uint8_t>()[i] = state >> 24;
    }
    input_ = stream_->AllocateDevice(bytes, at::kByte);
    const absl::MutexLock lock(&kernels::CaptureMutex(kGpu));
    CopyIn();
    answers_ = Enqueue(input_);
    host_answers_ = stream_->AllocateHost(answers_.numel(), at::kFloat);
    stream_->Wait();
    auto graph = stream_->Record(
        input_, [this](const at::Tensor& input) { return Enqueue(input); });
    TORCH_CHECK(graph.ok(),
                "the pass cannot be recorded: ", graph.status().ToString());
    graph_ = *std::move(graph);
  }

  // Replays the pass `times` times. Returns the milliseconds of one replay.
  double Replay(int times) {
    CopyIn();
    for (int i = 0; i < times; ++i) answers_ = graph_->Replay();
    stream_->CopyOut(answers_, host_answers_.view(answers_.sizes()));
    return absl::ToDoubleMilliseconds(stream_->ComputeTime()) / times;
  }

 private:
  void CopyIn() {
    stream_->CopyIn(pixels_.const_data_ptr(), input_.mutable_data_ptr(),
                    pixels_.nbytes());
    stream_->EndCopyIn();
  }

  at::Tensor Enqueue(const at::Tensor& input) const {
    const int side = model_.config.image_size;
    ops::PixelBatch batch;
    batch.height = batch.width = side;
    batch.mean = model_.config.mean;
    batch.std = model_.config.std;
    for (int i = 0; i < count_; ++i) {
      batch.images.push_back(
          {input.const_data_ptr<uint8_t>() + int64_t{3} * side * side * i, side,
           side});
    }
    return model_.network.Answers(
        ops::ImageBatch(std::move(batch), model_.runtime.device(kGpu),
                        ops::ComputeType(model_.config.precision)),
        /*fold_rows=*/0);
  }

  const Model& model_;
  const int count_;
  const std::unique_ptr<engine::DeviceStream> stream_;
  const std::unique_ptr<engine::DeviceStream::Scope> scope_;
  at::Tensor pixels_, input_, answers_, host_answers_;
  std::unique_ptr<engine::DeviceGraph> graph_;
};

// The time in which one of the threads replayed its graph.
struct Span {
  absl::Time begin, end;
  absl::Status status;
};

Span ReplayBesideOthers(const Model& model, int count, int times,
                        absl::Barrier* all) {
  Span span;
  std::unique_ptr<Pass> pass;
  span.status = engine::Guarded([&] {
    pass = std::make_unique<Pass>(model, count);
    return absl::OkStatus();
  });
  if (all->Block()) delete all;
  span.begin = absl::Now();
  if (span.status.ok()) {
    span.status = engine::Guarded([&] {
      pass->Replay(times);
      return absl::OkStatus();
    });
  }
  span.end = absl::Now();
  return span;
}

// Returns the images per second of `slots` graphs that are replayed at once.
absl::StatusOr<double> Overlapped(const Model& model, int slots, int count,
                                  int times) {
  std::vector<Span> spans(slots);
  auto* const all = new absl::Barrier(slots);  // The last thread deletes it.
  std::vector<std::thread> threads;
  for (Span& span : spans) {
    threads.emplace_back([&model, &span, count, times, all] {
      span = ReplayBesideOthers(model, count, times, all);
    });
  }
  for (std::thread& thread : threads) thread.join();
  absl::Time begin = absl::InfiniteFuture(), end = absl::InfinitePast();
  for (const Span& span : spans) {
    if (!span.status.ok()) return span.status;
    begin = std::min(begin, span.begin);
    end = std::max(end, span.end);
  }
  return 1.0 * slots * count * times / absl::ToDoubleSeconds(end - begin);
}

// Replays one graph for options.sustained. Returns the number of replays.
int ReplayOne(const Model& model, int count, const EngineOptions& options,
              ReplayFigure* figure) {
  Pass pass(model, count);
  const double one = std::max(pass.Replay(kFewReplays), 1e-3);
  const int times =
      options.tiny ? kTinyReplays
                   : static_cast<int>(std::ceil(
                         absl::ToDoubleMilliseconds(options.sustained) / one));
  std::thread looks([&] {
    absl::SleepFor(options.sustained / 2);
    figure->clocks = ReadClocks();
  });
  try {
    figure->ms = pass.Replay(times);
  } catch (...) {
    looks.join();
    throw;
  }
  looks.join();
  return times;
}

}  // namespace

absl::StatusOr<ReplayFigure> MeasureReplays(const EngineCase& engine,
                                            const EngineOptions& options) {
  weights::StateDict weights(weights::MakeRandomWeights(/*seed=*/1));
  const int count = engine.RunBatch(options.tiny);
  ReplayFigure figure;
  const absl::Status status = engine::Guarded([&] {
    const engine::DeviceRuntime& runtime = *engine::Devices();
    runtime.ConfigureLibraries();
    std::optional<Model> model;
    runtime.Load(kGpu, [&] {
      model.emplace(engine.Config(options.tiny), options.device, weights);
    });
    const int times = ReplayOne(*model, count, options, &figure);
    const absl::StatusOr<double> overlapped =
        Overlapped(*model, engine.slots, count, times);
    if (!overlapped.ok()) return overlapped.status();
    figure.overlapped_images_per_second = *overlapped;
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return figure;
}

}  // namespace sfmamba
