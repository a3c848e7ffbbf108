#include "server/batching/executor.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"
#include "server/base/reasons.h"

namespace sfmamba::batching {
namespace {

// A batch that runs longer is taken for hung; of a dense task, an image.
constexpr absl::Duration kHung = absl::Seconds(10);
constexpr absl::Duration kDenseHung = absl::Minutes(1);
// Until other batches have given their memory back.
constexpr absl::Duration kRetryAfterOom = absl::Milliseconds(500);

// The model's error as a client sees it: its own fault if the model says so.
absl::Status ModelError(const absl::Status& error) {
  if (absl::IsInvalidArgument(error)) return error;
  if (absl::IsResourceExhausted(error)) {
    return server::DeviceOutOfMemory(kRetryAfterOom);
  }
  return server::DeviceError(error.message());
}

bool AreFinite(absl::Span<const float> values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

bool IsFinite(const model::Classification& result) {
  return AreFinite(result.logits) && AreFinite(result.embedding);
}

bool IsFinite(const model::Detections& result) { return result.finite; }

bool IsFinite(const model::Segmentation& result) { return result.finite; }

model::ModelInput ToInput(const BatchTask& task) {
  const image::ImageBuffer& image = task.image;
  model::ModelInput input;
  input.height = image.height;
  input.width = image.width;
  if (image.pixels.empty()) {
    input.values = image.values.data();
  } else {
    input.pixels = image.pixels.data();
  }
  input.original_height = image.original_height;
  input.original_width = image.original_width;
  input.detection = task.detection;
  input.segmentation = task.segmentation;
  return input;
}

}  // namespace

absl::Duration HungAfter(model::VisionTask task, int max_batch_size) {
  if (task == model::VisionTask::kClassification) return kHung;
  return max_batch_size * kDenseHung;
}

Executor::Executor(Options options, std::unique_ptr<model::VisionModel> model,
                   observability::Metrics* metrics)
    : options_(std::move(options)),
      metrics_(metrics->Model(options_.name, options_.version)),
      model_(std::move(model)),
      batcher_(
          options_.batch, model_->slots(),
          [this](int) {
            return [this](Batch batch) { RunBatch(std::move(batch)); };
          },
          [this](int items, int64_t bytes, absl::Time oldest) {
            metrics_->QueueChanged(items, bytes, oldest);
          }) {}

absl::Status Executor::WarmUp() {
  const absl::Status prepared = model_->Prepare(options_.batch.max_batch_size);
  const absl::Status device = CheckDevice();
  return device.ok() ? prepared : device;
}

bool Executor::IsAlive(absl::Time now) const {
  return model_->health().ok() &&
         now - batcher_.RunningSince() <=
             HungAfter(config().task, options_.batch.max_batch_size);
}

absl::StatusOr<Reservation> Executor::Reserve(int items, int64_t bytes) {
  return batcher_.Reserve(items, bytes);
}

void Executor::Submit(BatchTask task) { batcher_.Submit(std::move(task)); }

void Executor::RunBatch(Batch batch) {
  const absl::Time start = base::SteadyNow();
  metrics_->BatchStarted();
  std::vector<model::ModelInput> inputs;
  for (const BatchTask& task : batch.tasks) inputs.push_back(ToInput(task));
  BatchInfo info;
  info.batch_size = batch.tasks.size();
  info.fold_factor = model_->fold_factor(batch.tasks.size());
  info.bucket = absl::StrCat(batch.tasks[0].bucket_height, "x",
                             batch.tasks[0].bucket_width);

  Results results = RunEach(inputs, &info.padded_batch_size);
  info.inference = base::SteadyNow() - start;
  // Of a batch that failed nothing is known.
  info.padded_batch_size = std::max(info.padded_batch_size, info.batch_size);
  metrics_->BatchRun(info.bucket, batch.trigger, info.batch_size,
                     info.padded_batch_size);

  for (size_t i = 0; i < batch.tasks.size(); ++i) {
    info.queue = start - batch.tasks[i].submitted;
    const bool finite =
        !results[i].ok() ||
        std::visit([](const auto& result) { return IsFinite(result); },
                   *results[i]);
    batch.tasks[i].done(
        finite ? std::move(results[i]) : server::NonFiniteOutput(), info);
  }
}

absl::Status Executor::CheckDevice() {
  const absl::Status health = model_->health();
  if (health.ok()) return health;
  absl::call_once(device_failed_,
                  [this, &health] { options_.device_failed(health); });
  return absl::UnavailableError(health.message());
}

absl::StatusOr<std::vector<model::Result>> Executor::RunModel(
    absl::Span<const model::ModelInput> inputs, int* padded) {
  absl::Status device = CheckDevice();
  if (!device.ok()) return device;
  model::RunInfo info;
  absl::StatusOr<std::vector<model::Result>> results =
      model_->Run(inputs, &info);
  device = CheckDevice();
  if (!device.ok()) return device;
  if (results.ok() && results->size() != inputs.size()) {
    return absl::InternalError(absl::StrCat(results->size(), " results for ",
                                            inputs.size(), " images"));
  }
  *padded += info.padded_images;
  return results;
}

Executor::Results Executor::RunEach(absl::Span<const model::ModelInput> inputs,
                                    int* padded) {
  absl::StatusOr<std::vector<model::Result>> results = RunModel(inputs, padded);
  if (!results.ok()) return Bisect(inputs, results.status(), padded);
  return Results(std::make_move_iterator(results->begin()),
                 std::make_move_iterator(results->end()));
}

Executor::Results Executor::Bisect(absl::Span<const model::ModelInput> inputs,
                                   const absl::Status& error, int* padded) {
  if (inputs.size() == 1 || absl::IsUnavailable(error)) {
    return Results(inputs.size(), ModelError(error));
  }
  const size_t middle = inputs.size() / 2;
  const absl::Span<const model::ModelInput> halves[] = {
      inputs.subspan(0, middle), inputs.subspan(middle)};
  absl::StatusOr<std::vector<model::Result>> answers[] = {
      RunModel(halves[0], padded), RunModel(halves[1], padded)};
  if (!answers[0].ok() && !answers[1].ok()) {
    return Results(inputs.size(), ModelError(error));
  }
  Results results;
  for (int i : {0, 1}) {
    if (answers[i].ok()) {
      for (model::Result& result : *answers[i])
        results.push_back(std::move(result));
    } else {
      for (absl::StatusOr<model::Result>& result :
           Bisect(halves[i], answers[i].status(), padded)) {
        results.push_back(std::move(result));
      }
    }
  }
  return results;
}

}  // namespace sfmamba::batching
