#include "server/batching/executor.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"
#include "model/execution_context.h"
#include "model/result.h"
#include "server/errors/reasons.h"
#include "server/tracing/batch_trace.h"

namespace sfmamba::batching {
namespace {

// HungAfter() computes the time after which a batch is considered hung. Until
// the first batch has ended, it uses these formulas:
// - Classifier: kHung + max_batch_size * kHungImage. kHungImage is twice the
//   time that a slow CPU needs for an image.
// - Dense model: max_batch_size * kHungDenseImage.
constexpr absl::Duration kHung = absl::Seconds(10);
constexpr absl::Duration kHungImage = absl::Milliseconds(100);
constexpr absl::Duration kHungDenseImage = absl::Minutes(1);
// The retry delay if the device is out of memory. Other batches are expected to
// free their memory within this delay.
constexpr absl::Duration kRetryAfterOom = absl::Milliseconds(500);

// Converts the model's error to the error that the client receives. Keeps
// INVALID_ARGUMENT unchanged, because the client caused this error.
absl::Status ModelError(const absl::Status& error) {
  if (absl::IsInvalidArgument(error)) return error;
  if (absl::IsResourceExhausted(error)) {
    return server::DeviceOutOfMemory(kRetryAfterOom);
  }
  if (absl::IsUnavailable(error)) return server::DeviceFailed(error.message());
  return server::DeviceError(error.message());
}

// The maximum size of a model's input pool in bytes. For GPUs, the pool is in
// pinned host memory.
constexpr int64_t kMostPooled = 256 << 20;

// Returns the model's result, or an error if the result is not finite.
absl::StatusOr<model::Result> Checked(absl::StatusOr<model::Result> result) {
  if (!result.ok()) return ModelError(result.status());
  if (!IsFinite(*result)) return server::NonFiniteOutput();
  return result;
}

model::ModelInput ToInput(const BatchTask& task) {
  const image::ImageBuffer& image = task.image;
  model::ModelInput input;
  input.height = image.height;
  input.width = image.width;
  if (image.pixels.empty()) {
    input.values = image.values.data();
  } else {
    input.pixels = image.pixels.data();
    input.planar = image.planar;
    input.page_locked = image.pixels.is_pooled();
  }
  input.original_height = image.original_height;
  input.original_width = image.original_width;
  input.options = task.options;
  return input;
}

// Creates the memory pool for the model's inputs. If the inputs can have
// different sizes, the pool is empty, and each input is allocated separately.
// On a CPU, the pool has memory for the inputs of one batch. On GPUs, it has
// memory for the inputs of all running batches and of a full queue. The pool
// never exceeds kMostPooled.
image::PixelPool MakePixelPool(const model::VisionModel& model,
                               const BatchOptions& options) {
  const model::ModelConfig& config = model.config();
  if (config.resize == model::Resize::kKeepRatio) return {nullptr, 0, 0};
  const int64_t bytes = int64_t{3} * config.image_size * config.image_size;
  int64_t count = options.max_batch_size;
  if (!absl::StartsWith(model.context_device(0), "cpu")) {
    count = count * model.contexts() + options.max_queue_items;
  }
  count = std::min(count, kMostPooled / bytes);
  return {model.AllocateInputs(bytes * count), static_cast<size_t>(bytes),
          static_cast<size_t>(count)};
}

// Returns the device of each context of the model. A context runs one batch at
// a time. If this model is the first model on a device, the device allows as
// many concurrent turns as the model has contexts on this device.
std::vector<DeviceTurns*> DevicesOf(const model::VisionModel& model,
                                    Devices& devices) {
  std::map<std::string, int> contexts;
  for (int i = 0; i < model.contexts(); ++i)
    ++contexts[model.context_device(i)];
  std::vector<DeviceTurns*> turns;
  for (int i = 0; i < model.contexts(); ++i) {
    const std::string device = model.context_device(i);
    turns.push_back(&devices.Get(device, contexts[device]));
  }
  return turns;
}

}  // namespace

absl::Duration HungAfter(model::VisionTask task, int max_batch_size,
                         absl::Duration longest) {
  const absl::Duration expected = task == model::VisionTask::kClassification
                                      ? kHung + max_batch_size * kHungImage
                                      : max_batch_size * kHungDenseImage;
  return expected + 2 * longest;
}

Executor::Executor(Options options, std::unique_ptr<model::VisionModel> model,
                   observability::Metrics* metrics)
    : options_(std::move(options)),
      all_metrics_(*metrics),
      metrics_(metrics->Model(options_.name, options_.version)),
      model_(std::move(model)),
      unprepared_(model_->contexts()),
      pixels_(MakePixelPool(*model_, options_.batch)),
      batcher_(
          options_.batch, DevicesOf(*model_, *options_.devices),
          [this](int thread) { return MakeRun(thread); }, this) {}

absl::Status Executor::WaitUntilPrepared() {
  absl::MutexLock lock(&prepare_mu_);
  prepare_mu_.Await(absl::Condition(
      +[](int* unprepared) { return *unprepared == 0; }, &unprepared_));
  return prepared_;
}

bool Executor::IsAlive(absl::Time now) const {
  return model_->health().ok() &&
         now - batcher_.RunningSince() <=
             HungAfter(config().task, options_.batch.max_batch_size,
                       absl::Nanoseconds(longest_nanos_.load()));
}

void Executor::QueueChanged(server::Priority priority,
                            const WaitingTasks::Waiting& waiting) {
  metrics_->QueueChanged(priority, waiting.tasks, waiting.bytes,
                         waiting.oldest);
}

void Executor::WaitPredicted(absl::Duration wait, absl::Duration backlog,
                             int active_clients) {
  metrics_->PredictedWait(wait);
  metrics_->BacklogIs(backlog);
  metrics_->ActiveClientsAre(active_clients);
}

void Executor::BatchEnded(const BatchQueue::BatchDuration& times) {
  metrics_->BatchPredicted(times.measured, times.predicted);
}

void Executor::Submit(BatchTask task) { batcher_.Submit(std::move(task)); }

Batcher::Run Executor::MakeRun(int thread) {
  Runner runner = [&] {
    absl::MutexLock turn(&TurnToPrepare(thread));
    return MakeRunner(thread);
  }();
  {
    absl::MutexLock lock(&prepare_mu_);
    prepared_.Update(runner.status());
    --unprepared_;
  }
  return [this, device = all_metrics_.Device(model_->context_device(thread)),
          runner = std::move(runner)](Batch batch) {
    device->BatchStarted();
    Batcher::Ran ran = RunBatch(runner, std::move(batch));
    device->BatchEnded();
    return ran;
  };
}

absl::Mutex& Executor::TurnToPrepare(int thread) {
  // CPU contexts are prepared one at a time. If several were prepared together,
  // each would be timed on only a share of the cores.
  const std::string device = OnCpu() ? "cpu" : model_->context_device(thread);
  absl::MutexLock lock(&prepare_mu_);
  return preparing_[device];
}

Executor::Runner Executor::MakeRunner(int thread) {
  {
    absl::MutexLock lock(&prepare_mu_);
    if (!prepared_.ok()) return prepared_;
  }
  if (options_.stop()) return absl::CancelledError("loading was stopped");
  Runner runner = MakeUnprepared(thread);
  if (!runner.ok()) return runner;
  const absl::Status status = WarmUpContext(thread, **runner);
  if (!status.ok()) return status;
  return runner;
}

absl::Status Executor::WarmUpContext(int thread, BatchRunner& runner) {
  std::unique_ptr<DeviceTurns::Member> turns;
  if (options_.background != nullptr) {
    const std::string device = model_->context_device(thread);
    turns = options_.devices->Get(device, /*at_once=*/1).Join();
  }
  WarmUp warm_up(options_, config(), options_.batch.max_batch_size, OnCpu(),
                 turns.get());
  absl::Status status = warm_up.Prepare(runner, thread == 0);
  const absl::Status device = CheckDevice();
  if (!device.ok()) return device;
  if (thread > 0 || !status.ok()) return status;
  status = warm_up.RunProbes(runner,
                             [this] { return MakeUnprepared(/*thread=*/0); });
  if (!status.ok()) return status;
  if (!options_.times.empty()) {
    batcher_.ImportProfile(options_.times);
    return absl::OkStatus();
  }
  const absl::StatusOr<std::vector<BatchTime>> times = warm_up.Measure(runner);
  if (times.ok()) batcher_.ImportProfile(*times);
  return times.status();
}

bool Executor::OnCpu() const {
  return absl::StartsWith(model_->context_device(0), "cpu");
}

Executor::Runner Executor::MakeUnprepared(int thread) {
  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> context =
      model_->MakeContext(thread);
  if (!context.ok()) return context.status();
  return std::make_unique<BatchRunner>(*std::move(context), &limits_,
                                       [this] { return CheckDevice(); });
}

std::vector<tracing::Attribute> Executor::SpanAttributes(const BatchInfo& info,
                                                         const Batch& batch,
                                                         int padding) const {
  const int size = static_cast<int>(batch.tasks.size());
  return {{"sfmamba.model", options_.name},
          {"sfmamba.version", options_.version},
          {"sfmamba.batch_size", size},
          {"sfmamba.padded_batch_size", size + padding},
          {"sfmamba.fold_factor", info.fold_factor},
          {"sfmamba.size_class", info.size_class},
          {"sfmamba.trigger", BatchTriggerName(batch.trigger)},
          {"sfmamba.device", model_->device()}};
}

Batcher::Ran Executor::RunBatch(const Runner& runner, Batch batch) {
  const absl::Time start = base::SteadyNow();
  metrics_->BatchStarted();
  std::vector<BatchTask>& tasks = batch.tasks;
  std::vector<model::ModelInput> inputs;
  for (const BatchTask& task : tasks) {
    inputs.push_back(ToInput(task));
    metrics_->TurnsPassed(static_cast<int>(batch.number - 1 - task.came_after));
  }
  const BatchLimits::Size size(batch.key.height, batch.key.width);
  const int batch_size = static_cast<int>(tasks.size());
  BatchInfo info;
  info.size_class = absl::StrCat(size.first, "x", size.second);
  info.started = start;
  tracing::BatchTrace trace;
  for (const BatchTask& task : tasks) trace.AddImage(task.trace);
  info.span = trace.context();
  int answered = 0;
  Batcher::Ran ran;
  const auto answer = [&](size_t image, absl::StatusOr<model::Result> result,
                          const BatchRunner::Progress& progress) {
    if (info.batch_size != progress.images) {
      info.batch_size = progress.images;
      info.fold_factor = model_->fold_factor(progress.images);
    }
    info.padded_batch_size = progress.padded_images;
    info.queue = start - tasks[image].submitted;
    info.inference = base::SteadyNow() - start;
    // The metrics count the batch before its last image is answered. A client
    // that has received all answers of a batch can therefore find the batch in
    // the metrics.
    if (++answered == batch_size) {
      metrics_->BatchRun(info.size_class, BatchTriggerName(batch.trigger),
                         batch_size, batch_size + progress.padding);
      metrics_->statistics().BatchRun(batch_size, info.inference);
      if (!info.span.empty()) {
        trace.End(start, start + info.inference,
                  SpanAttributes(info, batch, progress.padding));
      }
    }
    ran.succeeded = ran.succeeded && result.ok();
    auto& done = tasks[image].done;
    if (answered < batch_size) return done(Checked(std::move(result)), info);
    ran.answer_last = [done = std::move(done), info,
                       result = Checked(std::move(result))](bool idle) mutable {
      info.thread_is_idle = idle;
      done(std::move(result), info);
    };
  };
  if (runner.ok()) {
    (*runner)->Run(size, inputs, answer);
    longest_nanos_.store(
        std::max(longest_nanos_.load(),
                 absl::ToInt64Nanoseconds(base::SteadyNow() - start)));
    return ran;
  }
  for (int i = 0; i < batch_size; ++i) answer(i, runner.status(), {1, 1, 0});
  return ran;
}

absl::Status Executor::CheckDevice() {
  const absl::Status health = model_->health();
  if (health.ok()) return health;
  absl::call_once(device_failed_,
                  [this, &health] { options_.device_failed(health); });
  return absl::UnavailableError(health.message());
}

}  // namespace sfmamba::batching
