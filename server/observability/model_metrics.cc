#include "server/observability/model_metrics.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/observability/metric_families.h"
#include "server/observability/model_series.h"

namespace sfmamba::observability {
namespace {

using prometheus::Counter;
using prometheus::Gauge;

// Most sizes of a version that have their own series.
constexpr int kMaxBuckets = 64;

std::string Label(absl::string_view text) { return std::string(text); }

}  // namespace

ModelMetrics::ModelMetrics(std::shared_ptr<ModelSeries> shared,
                           absl::string_view version)
    : shared_(std::move(shared)), version_(version) {
  for (int i = 0; i < kItemOutcomeCount; ++i) {
    items_[i] = &shared_->families.items.Add(
        {{"model", shared_->model},
         {"version", version_},
         {"outcome", Label(ItemOutcomeName(ItemOutcome(i)))}});
  }
}

ModelMetrics::~ModelMetrics() {
  MetricFamilies& families = shared_->families;
  for (Counter* counter : items_) families.items.Remove(counter);
  absl::MutexLock lock(&mu_);
  for (Gauge* state : state_) {
    if (state != nullptr) families.model_state.Remove(state);
  }
  if (alive_ != nullptr) families.model_alive.Remove(alive_);
  for (ShardedHistogram* duration : load_durations_) {
    families.load_duration.Remove(duration);
  }
  for (auto& [key, counter] : requests_) families.requests.Remove(counter);
  for (auto& [key, counter] : batches_) families.batches.Remove(counter);
}

void ModelMetrics::RequestDone(Method method, absl::StatusCode code,
                               absl::string_view reason,
                               absl::Duration duration) {
  RequestsOf(method, code, reason)->Increment();
  // Series are made at their first value, since most pairs never occur. Later
  // values find them without a lock.
  std::atomic<ShardedHistogram*>& made =
      shared_->durations[static_cast<int>(method)][static_cast<int>(code)];
  ShardedHistogram* histogram = made.load(std::memory_order_acquire);
  if (histogram == nullptr) {
    // Add() returns the same histogram to two threads that come here at once.
    histogram = &shared_->families.request_duration.Add(
        {{"method", Label(MethodName(method))},
         {"model", shared_->model},
         {"code", Label(CodeName(code))}},
        LatencyBuckets());
    made.store(histogram, std::memory_order_release);
  }
  histogram->Observe(absl::ToDoubleSeconds(duration));
}

Counter* ModelMetrics::RequestsOf(Method method, absl::StatusCode code,
                                  absl::string_view reason) {
  // Successes, which are most requests, are counted without a lock.
  const bool is_ok = code == absl::StatusCode::kOk && reason.empty();
  std::atomic<Counter*>& ok = ok_requests_[static_cast<int>(method)];
  Counter* counter = is_ok ? ok.load(std::memory_order_acquire) : nullptr;
  if (counter != nullptr) return counter;
  absl::MutexLock lock(&mu_);
  Counter*& made = requests_[{method, code, Label(reason)}];
  if (made == nullptr) {
    made =
        &shared_->families.requests.Add({{"method", Label(MethodName(method))},
                                         {"model", shared_->model},
                                         {"version", version_},
                                         {"code", Label(CodeName(code))},
                                         {"reason", Label(reason)}});
  }
  if (is_ok) ok.store(made, std::memory_order_release);
  return made;
}

void ModelMetrics::ItemDone(ItemOutcome outcome) {
  items_[static_cast<int>(outcome)]->Increment();
}

void ModelMetrics::Rejected(absl::string_view reason, absl::string_view queue) {
  absl::MutexLock lock(&shared_->mu);
  Counter*& counter = shared_->rejections[{Label(reason), Label(queue)}];
  if (counter == nullptr) {
    counter = &shared_->families.rejections.Add({{"model", shared_->model},
                                                 {"reason", Label(reason)},
                                                 {"queue", Label(queue)}});
  }
  counter->Increment();
}

void ModelMetrics::ItemFailed(absl::string_view reason) {
  absl::MutexLock lock(&shared_->mu);
  Counter*& counter = shared_->errors[reason];
  if (counter == nullptr) {
    counter = &shared_->families.item_errors.Add(
        {{"model", shared_->model}, {"reason", Label(reason)}});
  }
  counter->Increment();
}

void ModelMetrics::DeadlineMissed(absl::string_view stage) {
  absl::MutexLock lock(&shared_->mu);
  Counter*& counter = shared_->misses[stage];
  if (counter == nullptr) {
    counter = &shared_->families.deadline_misses.Add(
        {{"model", shared_->model}, {"stage", Label(stage)}});
  }
  counter->Increment();
}

void ModelMetrics::StageDone(Stage stage, ItemOutcome outcome,
                             absl::Duration duration) {
  std::atomic<ShardedHistogram*>& made =
      shared_->stages[static_cast<int>(stage)][static_cast<int>(outcome)];
  ShardedHistogram* histogram = made.load(std::memory_order_acquire);
  if (histogram == nullptr) {
    // Add() returns the same histogram to two threads that come here at once.
    histogram = &shared_->families.stage_duration.Add(
        {{"model", shared_->model},
         {"stage", Label(StageName(stage))},
         {"outcome", Label(ItemOutcomeName(outcome))}},
        LatencyBuckets());
    made.store(histogram, std::memory_order_release);
  }
  histogram->Observe(absl::ToDoubleSeconds(duration));
}

void ModelMetrics::BatchStarted() { shared_->in_flight.Increment(); }

void ModelMetrics::BatchRun(absl::string_view bucket, absl::string_view trigger,
                            int items, int padded) {
  {
    absl::MutexLock lock(&mu_);
    if (buckets_.size() >= kMaxBuckets && !buckets_.contains(bucket)) {
      bucket = "other";
    }
    buckets_.emplace(bucket);
    Counter*& counter = batches_[absl::StrCat(bucket, " ", trigger)];
    if (counter == nullptr) {
      counter = &shared_->families.batches.Add({{"model", shared_->model},
                                                {"version", version_},
                                                {"bucket", Label(bucket)},
                                                {"trigger", Label(trigger)}});
    }
    counter->Increment();
  }
  shared_->in_flight.Decrement();
  shared_->batch_items.Observe(items);
  shared_->occupancy.Observe(static_cast<double>(items) / padded);
  shared_->padding.Increment(padded - items);
}

void ModelMetrics::BatchPredicted(absl::Duration measured,
                                  absl::Duration predicted) {
  if (predicted <= absl::ZeroDuration()) return;
  ShardedHistogram* histogram;
  {
    absl::MutexLock lock(&shared_->mu);
    ShardedHistogram*& made = shared_->cost_model_error;
    if (made == nullptr) {
      made = &shared_->families.cost_model_error.Add(
          {{"model", shared_->model}},
          Buckets{.5, .7, .8, .9, 1, 1.1, 1.25, 1.5, 2, 4});
    }
    histogram = made;
  }
  histogram->Observe(absl::FDivDuration(measured, predicted));
}

void ModelMetrics::CaptureFailed() { shared_->capture_failures.Increment(); }

void ModelMetrics::QueueChanged(server::Priority priority, int items,
                                int64_t bytes, absl::Time oldest) {
  Queue& queue = queues_[static_cast<int>(priority)];
  queue.items.store(items, std::memory_order_relaxed);
  queue.bytes.store(bytes, std::memory_order_relaxed);
  queue.oldest_nanos.store(
      oldest == absl::InfiniteFuture() ? kNoTime : absl::ToUnixNanos(oldest),
      std::memory_order_relaxed);
}

int ModelMetrics::waiting_items() const {
  int64_t items = 0;
  for (const Queue& queue : queues_) {
    items += queue.items.load(std::memory_order_relaxed);
  }
  return static_cast<int>(items);
}

void ModelMetrics::PredictedWait(absl::Duration wait) {
  predicted_wait_.store(absl::ToDoubleSeconds(wait), std::memory_order_relaxed);
}

void ModelMetrics::StateChanged(ModelState state) {
  absl::MutexLock lock(&mu_);
  for (int i = 0; i < kModelStateCount; ++i) {
    if (state_[i] == nullptr) {
      state_[i] = &shared_->families.model_state.Add(
          {{"model", shared_->model},
           {"version", version_},
           {"state", Label(ModelStateName(ModelState(i)))}});
    }
    state_[i]->Set(i == static_cast<int>(state) ? 1 : 0);
  }
}

void ModelMetrics::AliveIs(bool alive) {
  absl::MutexLock lock(&mu_);
  if (alive_ == nullptr) {
    alive_ = &shared_->families.model_alive.Add(
        {{"model", shared_->model}, {"version", version_}});
  }
  alive_->Set(alive ? 1 : 0);
}

void ModelMetrics::ReloadDone(bool ok) {
  const std::string result = ok ? "ok" : "error";
  absl::MutexLock lock(&shared_->mu);
  Counter*& counter = shared_->reloads[result];
  if (counter == nullptr) {
    counter = &shared_->families.reloads.Add(
        {{"model", shared_->model}, {"result", result}});
  }
  counter->Increment();
}

void ModelMetrics::LoadDone(bool ok, absl::Duration duration) {
  ShardedHistogram* histogram;
  {
    absl::MutexLock lock(&mu_);
    histogram = &shared_->families.load_duration.Add(
        {{"model", shared_->model},
         {"version", version_},
         {"result", ok ? "ok" : "error"}},
        Buckets{.1, .25, .5, 1, 2.5, 5, 10, 25, 50, 100, 250});
    load_durations_.insert(histogram);
  }
  histogram->Observe(absl::ToDoubleSeconds(duration));
}

}  // namespace sfmamba::observability
