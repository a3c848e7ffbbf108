#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>
#include <thread>

#include "absl/time/clock.h"
#include "c10/cuda/CUDACachingAllocator.h"
#include "tests/gpu/benchmark.h"

namespace sfmamba {
namespace {

// Calls that are measured at least, whatever the duration; more warm up.
constexpr int kFewestCalls = 3, kWarmUp = 3;

// Pictures of noise, as a server would hand them over.
class Batch {
 public:
  Batch(int count, int side) : pixels_(size_t{3} * side * side) {
    uint32_t state = 1;
    for (uint8_t& value : pixels_) {
      state = state * 1664525 + 1013904223;
      value = state >> 24;
    }
    ModelInput input;
    input.height = input.width = side;
    input.pixels = pixels_.data();  // One picture for all: equally costly.
    inputs_.assign(count, input);
  }

  const std::vector<ModelInput>& inputs() const { return inputs_; }

 private:
  std::vector<uint8_t> pixels_;
  std::vector<ModelInput> inputs_;
};

// Milliseconds of each call of one caller.
absl::StatusOr<std::vector<double>> Latencies(VisionModel& model,
                                              const Batch& batch,
                                              absl::Duration duration) {
  std::vector<double> ms;
  const absl::Time end = absl::Now() + duration;
  while (absl::Now() < end || ms.size() < kFewestCalls) {
    const absl::Time start = absl::Now();
    const auto results = model.Run(batch.inputs());
    if (!results.ok()) return results.status();
    ms.push_back(absl::ToDoubleMilliseconds(absl::Now() - start));
  }
  return ms;
}

// Batches per second of as many callers as there are slots.
absl::StatusOr<double> Throughput(VisionModel& model, const Batch& batch,
                                  absl::Duration duration) {
  std::atomic<int> batches = 0;
  std::vector<absl::Status> failed(model.slots());
  std::vector<std::thread> callers;
  const absl::Time start = absl::Now(), end = start + duration;
  for (int i = 0; i < model.slots(); ++i) {
    callers.emplace_back([&, i] {
      for (int calls = 0; calls < kFewestCalls || absl::Now() < end; ++calls) {
        failed[i] = model.Run(batch.inputs()).status();
        if (!failed[i].ok()) return;
        ++batches;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const absl::Status& status : failed) {
    if (!status.ok()) return status;
  }
  return batches / absl::ToDoubleSeconds(absl::Now() - start);
}

absl::Status MeasureModel(VisionModel& model, absl::Duration duration,
                          EngineFigure* figure) {
  const Batch batch(figure->engine.batch, figure->engine.side);
  for (int i = 0; i < kWarmUp; ++i) {
    const absl::Status status = model.Run(batch.inputs()).status();
    if (!status.ok()) return status;
  }
  const auto ms = Latencies(model, batch, duration);
  if (!ms.ok()) return ms.status();
  figure->ms = Quantiles::Of(*ms);
  const auto batches = Throughput(model, batch, duration);
  if (!batches.ok()) return batches.status();
  figure->images_per_second = *batches * figure->engine.batch;
  size_t available = 0, all = 0;
  if (cudaMemGetInfo(&available, &all) == cudaSuccess) {
    figure->mib = double(all - available) / (1 << 20);
  }
  return absl::OkStatus();
}

// What two cases must share to be measured on one loaded model.
bool SameModel(const EngineCase& a, const EngineCase& b) {
  return a.group == b.group && std::string(a.variant) == b.variant &&
         a.precision == b.precision && a.side == b.side && a.club == b.club &&
         a.fold_rows == b.fold_rows;
}

}  // namespace

std::vector<EngineFigure> MeasureEngines(const std::vector<EngineCase>& cases,
                                         absl::Duration duration,
                                         const Setting& setting,
                                         const WriteLine& write) {
  std::vector<EngineFigure> figures;
  std::unique_ptr<VisionModel> model;
  for (size_t i = 0; i < cases.size(); ++i) {
    const EngineCase& engine = cases[i];
    EngineFigure figure;
    figure.engine = engine;
    absl::Status status;
    if (model == nullptr || !SameModel(engine, cases[i - 1])) {
      model.reset();  // Its memory first.
      c10::cuda::CUDACachingAllocator::emptyCache();
      auto loaded =
          VisionModel::Random(engine.Config(), /*seed=*/1, engine.Options());
      status = loaded.status();
      if (loaded.ok()) model = *std::move(loaded);
    }
    if (status.ok()) status = MeasureModel(*model, duration, &figure);
    if (!status.ok()) {
      figure.note =
          absl::IsResourceExhausted(status) ? "OOM" : status.ToString();
      model.reset();
    }
    figures.push_back(figure);
    write(Json(figure, setting));
  }
  return figures;
}

}  // namespace sfmamba
