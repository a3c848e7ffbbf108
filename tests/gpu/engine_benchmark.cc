#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <future>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "model/execution_context.h"
#include "tests/gpu/benchmark.h"
#include "tests/gpu/context_thread.h"
#include "tests/gpu/device.h"
#include "tests/gpu/replays.h"

namespace sfmamba {
namespace {

// Returns the smallest number of calls to measure, even if they take longer
// than the duration.
int FewestCalls(bool tiny) { return tiny ? 1 : 3; }

// Stores the error of the last graph that could not be recorded. Thread-safe.
class FailedCapture {
 public:
  void Set(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    message_ = status.ToString();
  }
  std::string message() const ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    return message_;
  }

 private:
  mutable absl::Mutex mu_;
  std::string message_ ABSL_GUARDED_BY(mu_);
};

// Batches of noise pictures in pinned memory, as in a server. No picture occurs
// twice in a batch or in kBatches consecutive batches, so no cache contains it
// when it is copied. Thread-safe.
class Pictures {
 public:
  Pictures(const model::VisionModel& model, int count)
      : count_(count),
        bytes_(size_t{3} * model.config().image_size *
               model.config().image_size),
        batches_(std::clamp<size_t>(kMostBytes / bytes_ / count, 1, kBatches)),
        pixels_(model.AllocateInputs(bytes_ * count * batches_)) {
    uint32_t state = 1;
    for (size_t i = 0; i < bytes_ * count * batches_; ++i) {
      state = state * 1664525 + 1013904223;
      pixels_.get()[i] = state >> 24;
    }
    model::ModelInput input;
    input.height = input.width = model.config().image_size;
    input.page_locked = true;
    inputs_.assign(count * batches_, input);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      inputs_[i].pixels = pixels_.get() + i * bytes_;
    }
  }

  absl::Span<const model::ModelInput> NextBatch() const {
    return absl::MakeConstSpan(inputs_).subspan(next_++ % batches_ * count_,
                                                count_);
  }

 private:
  static constexpr size_t kBatches = 4;
  static constexpr size_t kMostBytes = size_t{512} << 20;

  const size_t count_, bytes_, batches_;
  const std::shared_ptr<uint8_t> pixels_;
  std::vector<model::ModelInput> inputs_;
  mutable std::atomic<size_t> next_{0};
};

// Has one thread for each of a model's contexts.
using Threads = std::vector<std::unique_ptr<ContextThread>>;

Threads MakeThreads(model::VisionModel& model) {
  Threads threads;
  for (int i = 0; i < model.contexts(); ++i) {
    threads.push_back(std::make_unique<ContextThread>(model, i));
  }
  return threads;
}

// Runs the next batch and ignores its results.
absl::Status RunBatch(model::ExecutionContext& context,
                      const Pictures& pictures, model::RunInfo* info) {
  return context.Run(pictures.NextBatch(), info, [](const model::Result&) {});
}

// Measures with one caller and sets the times in the figure.
absl::Status MeasureLatency(model::ExecutionContext& context,
                            const Pictures& pictures,
                            const EngineOptions& options,
                            EngineFigure* figure) {
  model::RunInfo info;
  absl::Status status = RunBatch(context, pictures, &info);  // Warms up.
  std::vector<double> ms, device_ms;
  const absl::Time end = absl::Now() + options.duration;
  while (status.ok() &&
         (absl::Now() < end || ms.size() < FewestCalls(options.tiny))) {
    const absl::Time start = absl::Now();
    status = RunBatch(context, pictures, &info);
    ms.push_back(absl::ToDoubleMilliseconds(absl::Now() - start));
    device_ms.push_back(absl::ToDoubleMilliseconds(info.device_time));
    figure->padded_images = info.padded_images;
  }
  if (!status.ok()) return status;
  figure->ms = kernels::Quantiles::Of(std::move(ms));
  figure->device_ms = kernels::Quantiles::Of(std::move(device_ms));
  return absl::OkStatus();
}

// Returns the batches per second of all threads, and the clocks meanwhile.
absl::StatusOr<double> Throughput(const Threads& threads,
                                  const Pictures& pictures,
                                  const EngineOptions& options,
                                  Clocks* clocks) {
  const int fewest = FewestCalls(options.tiny);
  std::atomic<int> batches = 0;
  const absl::Time start = absl::Now(), end = start + options.duration;
  std::vector<std::future<absl::Status>> running;
  for (const std::unique_ptr<ContextThread>& thread : threads) {
    running.push_back(thread->Start([&](model::ExecutionContext& context) {
      absl::Status status;
      model::RunInfo info;
      for (int calls = 0; status.ok() && (calls < fewest || absl::Now() < end);
           ++calls) {
        status = RunBatch(context, pictures, &info);
        if (status.ok()) ++batches;
      }
      return status;
    }));
  }
  absl::SleepFor(options.duration / 2);
  *clocks = ReadClocks();
  absl::Status failed;
  for (std::future<absl::Status>& status : running) failed.Update(status.get());
  if (!failed.ok()) return failed;
  return batches / absl::ToDoubleSeconds(absl::Now() - start);
}

absl::Status MeasureModel(const model::VisionModel& model,
                          const Threads& threads, const EngineOptions& options,
                          EngineFigure* figure) {
  const int count = figure->engine.RunBatch(options.tiny);
  const Pictures pictures(model, count);
  const absl::Status status =
      threads[0]->Do([&](model::ExecutionContext& context) {
        return MeasureLatency(context, pictures, options, figure);
      });
  if (!status.ok()) return status;
  const auto batches = Throughput(threads, pictures, options, &figure->clocks);
  if (!batches.ok()) return batches.status();
  figure->images_per_second = *batches * count;
  figure->mib = DeviceMib();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<model::VisionModel>> LoadModel(
    const EngineCase& engine, const EngineOptions& options) {
  return model::VisionModel::Random(
      engine.Config(options.tiny), /*seed=*/1,
      engine.Options(options.device, options.tiny));
}

// Warms up each context with each batch size, one after another. The largest
// size comes first, so that memory does not grow later. Returns for each size
// whether it fits into memory.
std::map<int, absl::Status> Prepare(const Threads& threads,
                                    absl::Span<const EngineCase> cases,
                                    bool tiny) {
  std::vector<int> batches;
  for (const EngineCase& engine : cases) {
    batches.push_back(engine.RunBatch(tiny));
  }
  std::sort(batches.rbegin(), batches.rend());
  std::map<int, absl::Status> prepared;
  for (const int batch : batches) {
    if (prepared.count(batch) > 0) continue;
    absl::Status& status = prepared[batch];
    for (const std::unique_ptr<ContextThread>& thread : threads) {
      if (!status.ok()) break;
      status = thread->Do([batch](model::ExecutionContext& context) {
        return context.Prepare(batch, batch);
      });
    }
  }
  return prepared;
}

// Measures cases that use the same model.
void MeasureCases(absl::Span<const EngineCase> cases, int round,
                  EngineOptions options, const Setting& setting,
                  const WriteLine& write) {
  ReleaseCachedMemory();
  FailedCapture failed;  // Must outlive the model.
  options.device.capture_failed = [&](const absl::Status& status) {
    failed.Set(status);
  };
  auto model = LoadModel(cases[0], options);
  Threads threads;
  if (model.ok()) threads = MakeThreads(**model);
  std::map<int, absl::Status> prepared = Prepare(threads, cases, options.tiny);
  std::vector<EngineFigure> figures;
  for (const EngineCase& engine : cases) {
    EngineFigure figure;
    figure.engine = engine;
    figure.tuned = options.device.scan_plans != nullptr;
    absl::Status status = model.status();
    if (status.ok()) status = prepared[engine.RunBatch(options.tiny)];
    if (status.ok()) status = MeasureModel(**model, threads, options, &figure);
    if (!status.ok()) {
      figure.note =
          absl::IsResourceExhausted(status) ? "OOM" : status.ToString();
    }
    figure.uncaptured = failed.message();
    figure.round = round;
    figures.push_back(figure);
  }
  threads.clear();
  model = absl::UnavailableError("its memory is given back");
  for (EngineFigure& figure : figures) {
    if (options.sustained > absl::ZeroDuration() && figure.note.empty()) {
      ReleaseCachedMemory();
      const absl::StatusOr<ReplayFigure> replays =
          MeasureReplays(figure.engine, options);
      if (replays.ok()) {
        figure.sustained_ms = replays->ms;
        figure.sustained_clocks = replays->clocks;
        figure.overlapped_images_per_second =
            replays->overlapped_images_per_second;
      } else {
        std::fprintf(stderr, "replays: %s\n",
                     replays.status().ToString().c_str());
      }
    }
    write(Json(figure, setting));
  }
}

}  // namespace

void MeasureEngines(const std::vector<EngineCase>& cases,
                    const EngineOptions& options, const Setting& setting,
                    const WriteLine& write) {
  for (int round = 1; round <= options.rounds; ++round) {
    for (size_t begin = 0, end = 0; begin < cases.size(); begin = end) {
      while (end < cases.size() && SameModel(cases[begin], cases[end])) ++end;
      MeasureCases(absl::MakeSpan(cases).subspan(begin, end - begin), round,
                   options, setting, write);
    }
  }
}

absl::Status RunOnce(const EngineCase& engine, const EngineOptions& options) {
  model::ModelOptions model_options =
      engine.Options(options.device, options.tiny);
  model_options.graphs = false;
  model_options.slots_per_gpu = 1;
  const model::ModelConfig config = engine.Config(options.tiny);
  const auto model =
      model::VisionModel::Random(config, /*seed=*/1, model_options);
  if (!model.ok()) return model.status();
  const int count = engine.RunBatch(options.tiny);
  const auto context = (*model)->MakeContext(/*index=*/0);
  if (!context.ok()) return context.status();
  const absl::Status prepared = (*context)->Prepare(count, count);
  if (!prepared.ok()) return prepared;
  const Pictures pictures(**model, count);
  model::RunInfo info;
  const absl::Status warm = RunBatch(**context, pictures, &info);
  if (!warm.ok()) return warm;
  StartProfiler();
  const absl::Status status = RunBatch(**context, pictures, &info);
  StopProfiler();
  return status;
}

}  // namespace sfmamba
