#include "server/observability/model_metrics.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "server/observability/metric_families.h"

namespace sfmamba::observability {
namespace {

// The maximum number of image sizes for which a version has separate series.
constexpr int kMaxSizes = 64;

absl::string_view ResultName(bool ok) { return ok ? "ok" : "error"; }

}  // namespace

ModelMetrics::ModelMetrics(const MetricFamilies& families,
                           std::shared_ptr<ModelSeries> shared,
                           absl::string_view version)
    : shared_(std::move(shared)),
      own_(std::make_unique<VersionSeries>(
          families,
          std::vector<std::string>{shared_->model, std::string(version)})) {
  for (int i = 0; i < kItemOutcomeCount; ++i) {
    own_->items.Of({ItemOutcomeName(ItemOutcome(i))});
  }
}

ModelMetrics::~ModelMetrics() = default;

void ModelMetrics::RequestDone(Method method, absl::StatusCode code,
                               absl::string_view reason,
                               absl::Duration duration) {
  own_->requests
      .Of({MethodName(method), absl::StatusCodeToString(code), reason})
      .Increment();
  shared_->durations.Of({MethodName(method), absl::StatusCodeToString(code)})
      .Observe(absl::ToDoubleSeconds(duration));
}

void ModelMetrics::ItemDone(ItemOutcome outcome) {
  own_->items.Of({ItemOutcomeName(outcome)}).Increment();
}

void ModelMetrics::Rejected(absl::string_view reason, absl::string_view queue) {
  shared_->rejections.Of({reason, queue}).Increment();
}

void ModelMetrics::ItemFailed(absl::string_view reason) {
  shared_->errors.Of({reason}).Increment();
}

void ModelMetrics::DeadlineMissed(absl::string_view stage) {
  shared_->misses.Of({stage}).Increment();
}

void ModelMetrics::StageDone(Stage stage, ItemOutcome outcome,
                             absl::Duration duration) {
  shared_->stages.Of({StageName(stage), ItemOutcomeName(outcome)})
      .Observe(absl::ToDoubleSeconds(duration));
}

void ModelMetrics::BatchStarted() { shared_->in_flight.Of().Increment(); }

void ModelMetrics::BatchRun(absl::string_view size, absl::string_view trigger,
                            int items, int padded) {
  {
    absl::MutexLock lock(&mu_);
    const bool is_full = sizes_.size() >= kMaxSizes;
    if (is_full && !sizes_.contains(size)) size = "other";
    sizes_.emplace(size);
  }
  own_->batches.Of({size, trigger}).Increment();
  shared_->in_flight.Of().Decrement();
  shared_->batch_items.Of().Observe(items);
  shared_->occupancy.Of().Observe(static_cast<double>(items) / padded);
  shared_->padding.Of().Increment(padded - items);
}

void ModelMetrics::BatchPredicted(absl::Duration measured,
                                  absl::Duration predicted) {
  if (predicted <= absl::ZeroDuration()) return;
  shared_->cost_model_error.Of().Observe(
      absl::FDivDuration(measured, predicted));
}

void ModelMetrics::CaptureFailed() {
  shared_->capture_failures.Of().Increment();
}

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

void ModelMetrics::BacklogIs(absl::Duration backlog) {
  backlog_.store(absl::ToDoubleSeconds(backlog), std::memory_order_relaxed);
}

void ModelMetrics::ActiveClientsAre(int clients) {
  active_clients_.store(clients, std::memory_order_relaxed);
}

void ModelMetrics::TurnsPassed(int batches) {
  shared_->turns_passed.Of().Observe(batches);
}

void ModelMetrics::ShowQueue(absl::Time now) const {
  const int64_t now_nanos = absl::ToUnixNanos(now);
  for (int i = 0; i < server::kPriorityCount; ++i) {
    const Queue& queue = queues_[i];
    const absl::string_view priority = PriorityName(server::Priority(i));
    shared_->queue_items.Of({priority}).Increment(queue.items.load());
    shared_->queue_bytes.Of({priority}).Increment(queue.bytes.load());
    const int64_t oldest = queue.oldest_nanos.load();
    const double age = oldest == kNoTime ? 0 : (now_nanos - oldest) * 1e-9;
    Gauge& oldest_age = shared_->queue_age.Of({priority});
    oldest_age.Set(std::max(oldest_age.Value(), age));
  }
  shared_->backlog.Of().Increment(backlog_.load());
  Gauge& clients = shared_->active_clients.Of();
  clients.Set(std::max<double>(clients.Value(), active_clients_.load()));
  const double wait = predicted_wait_.load();
  if (wait < 0) return;
  Gauge& longest = shared_->predicted_wait.Of();
  longest.Set(std::max(longest.Value(), wait));
}

void ModelMetrics::StateChanged(ModelState state) {
  for (int i = 0; i < kModelStateCount; ++i) {
    own_->state.Of({ModelStateName(ModelState(i))})
        .Set(i == static_cast<int>(state) ? 1 : 0);
  }
}

void ModelMetrics::AliveIs(bool alive) { own_->alive.Of().Set(alive ? 1 : 0); }

void ModelMetrics::ReloadDone(bool ok) {
  shared_->reloads.Of({ResultName(ok)}).Increment();
}

void ModelMetrics::LoadDone(bool ok, absl::Duration duration) {
  own_->load_durations.Of({ResultName(ok)})
      .Observe(absl::ToDoubleSeconds(duration));
}

void InferenceStatistics::RequestSucceeded(int images, const Times& times) {
  const absl::Time now = absl::Now();
  absl::MutexLock lock(&mu_);
  sums_.images += images;
  sums_.last = now;
  sums_.success.Add(times.total);
  sums_.queue.Add(times.queue);
  sums_.input.Add(times.input);
  sums_.infer.Add(times.infer);
  sums_.output.Add(times.output);
}

void InferenceStatistics::RequestFailed(absl::Duration total) {
  absl::MutexLock lock(&mu_);
  sums_.fail.Add(total);
}

void InferenceStatistics::BatchRun(int images, absl::Duration time) {
  absl::MutexLock lock(&mu_);
  ++sums_.batches;
  sums_.by_batch_size[images].Add(time);
}

InferenceStatistics::Snapshot InferenceStatistics::Get() const {
  absl::MutexLock lock(&mu_);
  return sums_;
}

}  // namespace sfmamba::observability
