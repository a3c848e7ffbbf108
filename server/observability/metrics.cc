#include "server/observability/metrics.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"
#include "server/observability/metric_families.h"
#include "server/observability/process_metrics.h"

namespace sfmamba::observability {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::MetricFamily;

// Of a version that have series of their own.
constexpr int kMaxBuckets = 64;
constexpr int64_t kNoTime = std::numeric_limits<int64_t>::max();

absl::string_view CodeName(absl::StatusCode code) {
  static constexpr absl::string_view kNames[] = {"OK",
                                                 "CANCELLED",
                                                 "UNKNOWN",
                                                 "INVALID_ARGUMENT",
                                                 "DEADLINE_EXCEEDED",
                                                 "NOT_FOUND",
                                                 "ALREADY_EXISTS",
                                                 "PERMISSION_DENIED",
                                                 "RESOURCE_EXHAUSTED",
                                                 "FAILED_PRECONDITION",
                                                 "ABORTED",
                                                 "OUT_OF_RANGE",
                                                 "UNIMPLEMENTED",
                                                 "INTERNAL",
                                                 "UNAVAILABLE",
                                                 "DATA_LOSS",
                                                 "UNAUTHENTICATED"};
  return kNames[static_cast<int>(code)];
}

std::string Label(absl::string_view text) { return std::string(text); }

MetricFamily GaugeFamily(absl::string_view name, absl::string_view help) {
  MetricFamily family;
  family.name = std::string(name);
  family.help = std::string(help);
  family.type = prometheus::MetricType::Gauge;
  return family;
}

void AddGauge(absl::string_view model, double value, MetricFamily* family) {
  prometheus::ClientMetric metric;
  metric.label = {{"model", std::string(model)}, {"priority", "normal"}};
  metric.gauge.value = value;
  family->metric.push_back(std::move(metric));
}

}  // namespace

absl::string_view MethodName(Method method) {
  static constexpr absl::string_view kNames[kMethodCount] = {
      "Classify",      "Detect",   "Segment",
      "StreamPredict", "GetModel", "ListModels"};
  return kNames[static_cast<int>(method)];
}

absl::string_view StageName(Stage stage) {
  static constexpr absl::string_view kNames[kStageCount] = {
      "decode", "preprocess", "queue", "inference", "postprocess"};
  return kNames[static_cast<int>(stage)];
}

absl::string_view ItemOutcomeName(ItemOutcome outcome) {
  static constexpr absl::string_view kNames[kItemOutcomeCount] = {
      "ok", "rejected", "expired", "cancelled", "error"};
  return kNames[static_cast<int>(outcome)];
}

absl::string_view BatchTriggerName(BatchTrigger trigger) {
  static constexpr absl::string_view kNames[] = {"full", "delay", "drain"};
  return kNames[static_cast<int>(trigger)];
}

absl::string_view ModelStateName(ModelState state) {
  static constexpr absl::string_view kNames[kModelStateCount] = {
      "LOADING", "READY", "UNAVAILABLE"};
  return kNames[static_cast<int>(state)];
}

struct ModelMetrics::Shared {
  MetricFamilies& families;
  const std::string model;
  std::array<Histogram*, kStageCount> stages;
  Histogram& batch_items;
  Histogram& occupancy;
  Counter& padding;
  Counter& capture_failures;
  Gauge& in_flight;

  absl::Mutex mu;
  std::array<Histogram*, kMethodCount> durations ABSL_GUARDED_BY(mu) = {};
  absl::flat_hash_map<std::string, Counter*> rejections ABSL_GUARDED_BY(mu);
  absl::flat_hash_map<std::string, Counter*> misses ABSL_GUARDED_BY(mu);

  Shared(MetricFamilies& families, absl::string_view name)
      : families(families),
        model(name),
        batch_items(
            families.batch_items.Add({{"model", model}}, PowersOfTwo(0, 7))),
        occupancy(families.fold_occupancy.Add(
            {{"model", model}},
            Buckets{.1, .2, .3, .4, .5, .6, .7, .8, .9, 1})),
        padding(families.padding_items.Add({{"model", model}})),
        capture_failures(families.capture_failures.Add({{"model", model}})),
        in_flight(families.in_flight_batches.Add({{"model", model}})) {
    for (int i = 0; i < kStageCount; ++i) {
      stages[i] = &families.stage_duration.Add(
          {{"model", model}, {"stage", Label(StageName(Stage(i)))}},
          LatencyBuckets());
    }
  }

  ~Shared() {
    for (Histogram* stage : stages) families.stage_duration.Remove(stage);
    families.batch_items.Remove(&batch_items);
    families.fold_occupancy.Remove(&occupancy);
    families.padding_items.Remove(&padding);
    families.capture_failures.Remove(&capture_failures);
    families.in_flight_batches.Remove(&in_flight);
    absl::MutexLock lock(&mu);
    for (Histogram* duration : durations) {
      if (duration != nullptr) families.request_duration.Remove(duration);
    }
    for (auto& [reason, counter] : rejections) {
      families.rejections.Remove(counter);
    }
    for (auto& [stage, counter] : misses) {
      families.deadline_misses.Remove(counter);
    }
  }
};

// ---- ModelMetrics ----

ModelMetrics::ModelMetrics(std::shared_ptr<Shared> shared,
                           absl::string_view version)
    : shared_(std::move(shared)), version_(version), oldest_nanos_(kNoTime) {
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
  for (Histogram* duration : load_durations_) {
    families.load_duration.Remove(duration);
  }
  for (const auto& codes : requests_) {
    for (Counter* counter : codes) {
      if (counter != nullptr) families.requests.Remove(counter);
    }
  }
  for (auto& [key, counter] : batches_) families.batches.Remove(counter);
}

void ModelMetrics::RequestDone(Method method, absl::StatusCode code,
                               absl::Duration duration) {
  const int i = static_cast<int>(method);
  Counter* counter;
  {
    absl::MutexLock lock(&mu_);
    Counter*& made = requests_[i][static_cast<int>(code)];
    if (made == nullptr) {
      made = &shared_->families.requests.Add(
          {{"method", Label(MethodName(method))},
           {"model", shared_->model},
           {"version", version_},
           {"code", Label(CodeName(code))}});
    }
    counter = made;
  }
  counter->Increment();
  Histogram* histogram;
  {
    absl::MutexLock lock(&shared_->mu);
    Histogram*& made = shared_->durations[i];
    if (made == nullptr) {
      made = &shared_->families.request_duration.Add(
          {{"method", Label(MethodName(method))}, {"model", shared_->model}},
          LatencyBuckets());
    }
    histogram = made;
  }
  histogram->Observe(absl::ToDoubleSeconds(duration));
}

void ModelMetrics::ItemDone(ItemOutcome outcome) {
  items_[static_cast<int>(outcome)]->Increment();
}

void ModelMetrics::Rejected(absl::string_view reason) {
  absl::MutexLock lock(&shared_->mu);
  Counter*& counter = shared_->rejections[reason];
  if (counter == nullptr) {
    counter = &shared_->families.rejections.Add(
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

void ModelMetrics::StageDone(Stage stage, absl::Duration duration) {
  shared_->stages[static_cast<int>(stage)]->Observe(
      absl::ToDoubleSeconds(duration));
}

void ModelMetrics::BatchStarted() { shared_->in_flight.Increment(); }

void ModelMetrics::BatchRun(absl::string_view bucket, BatchTrigger trigger,
                            int items, int padded) {
  {
    absl::MutexLock lock(&mu_);
    const absl::string_view trigger_name = BatchTriggerName(trigger);
    if (buckets_.size() >= kMaxBuckets && !buckets_.contains(bucket)) {
      bucket = "other";
    }
    buckets_.emplace(bucket);
    Counter*& counter = batches_[absl::StrCat(bucket, " ", trigger_name)];
    if (counter == nullptr) {
      counter =
          &shared_->families.batches.Add({{"model", shared_->model},
                                          {"version", version_},
                                          {"bucket", Label(bucket)},
                                          {"trigger", Label(trigger_name)}});
    }
    counter->Increment();
  }
  shared_->in_flight.Decrement();
  shared_->batch_items.Observe(items);
  shared_->occupancy.Observe(static_cast<double>(items) / padded);
  shared_->padding.Increment(padded - items);
}

void ModelMetrics::CaptureFailed() { shared_->capture_failures.Increment(); }

void ModelMetrics::QueueChanged(int items, int64_t bytes, absl::Time oldest) {
  queue_items_.store(items, std::memory_order_relaxed);
  queue_bytes_.store(bytes, std::memory_order_relaxed);
  oldest_nanos_.store(
      oldest == absl::InfiniteFuture() ? kNoTime : absl::ToUnixNanos(oldest),
      std::memory_order_relaxed);
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

void ModelMetrics::LoadDone(bool ok, absl::Duration duration) {
  Histogram* histogram;
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

// ---- Metrics ----

Metrics::Metrics(const BuildInfo& build)
    : families_(std::make_unique<MetricFamilies>(build)),
      unknown_(Model("_unknown", "")),
      none_(Model("", "")) {}

Metrics::~Metrics() = default;

std::shared_ptr<ModelMetrics> Metrics::Model(absl::string_view model,
                                             absl::string_view version) {
  absl::MutexLock lock(&mu_);
  std::weak_ptr<ModelMetrics>& slot =
      models_[std::make_pair(std::string(model), std::string(version))];
  if (std::shared_ptr<ModelMetrics> found = slot.lock()) return found;
  std::weak_ptr<ModelMetrics::Shared>& shared_slot = shared_[model];
  std::shared_ptr<ModelMetrics::Shared> shared = shared_slot.lock();
  if (shared == nullptr) {
    shared = std::make_shared<ModelMetrics::Shared>(*families_, model);
    shared_slot = shared;
  }
  std::shared_ptr<ModelMetrics> made(
      new ModelMetrics(std::move(shared), version));
  slot = made;
  return made;
}

void Metrics::RequestStarted(Method method, int64_t bytes) {
  families_->in_flight_by_method[static_cast<int>(method)]->Increment();
  families_->bytes_by_method[static_cast<int>(method)]->Observe(bytes);
}

void Metrics::RequestFinished(Method method) {
  families_->in_flight_by_method[static_cast<int>(method)]->Decrement();
}

void Metrics::ImageDecoded(absl::string_view format, int64_t pixels) {
  families_->image_pixels.Add({{"format", Label(format)}}, PowersOfTwo(16, 26))
      .Observe(pixels);
}

void Metrics::ImageFailed(absl::string_view format, absl::string_view reason) {
  families_->decode_failures
      .Add({{"format", Label(format)}, {"reason", Label(reason)}})
      .Increment();
}

void Metrics::DecodeQueued() { families_->queued.Increment(); }

void Metrics::DecodeStarted() {
  families_->queued.Decrement();
  families_->busy.Increment();
}

void Metrics::DecodeDone() { families_->busy.Decrement(); }

std::vector<MetricFamily> Metrics::Collect() const {
  std::vector<MetricFamily> all = families_->registry.Collect();
  for (MetricFamily& family : CollectQueues()) all.push_back(std::move(family));
  for (MetricFamily& family : CollectProcess()) {
    all.push_back(std::move(family));
  }
  return all;
}

std::vector<MetricFamily> Metrics::CollectQueues() const {
  // Copied, so that no ModelMetrics is destroyed under the lock.
  std::vector<std::shared_ptr<ModelMetrics>> models;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [key, slot] : models_) {
      std::shared_ptr<ModelMetrics> model = slot.lock();
      if (model != nullptr && !key.second.empty()) models.push_back(model);
    }
  }
  struct Queue {
    int64_t items = 0;
    int64_t bytes = 0;
    int64_t oldest_nanos = kNoTime;
  };
  absl::flat_hash_map<std::string, Queue> queues;
  for (const std::shared_ptr<ModelMetrics>& model : models) {
    Queue& queue = queues[model->shared_->model];
    queue.items += model->queue_items_.load(std::memory_order_relaxed);
    queue.bytes += model->queue_bytes_.load(std::memory_order_relaxed);
    queue.oldest_nanos =
        std::min(queue.oldest_nanos,
                 model->oldest_nanos_.load(std::memory_order_relaxed));
  }
  MetricFamily items =
      GaugeFamily("sfmamba_queue_items", "Images waiting for a batch.");
  MetricFamily bytes =
      GaugeFamily("sfmamba_queue_bytes", "Size of the images waiting.");
  MetricFamily age = GaugeFamily("sfmamba_queue_oldest_age_seconds",
                                 "How long the oldest image has waited.");
  const int64_t now = absl::ToUnixNanos(base::SteadyNow());
  for (const auto& [model, queue] : queues) {
    AddGauge(model, queue.items, &items);
    AddGauge(model, queue.bytes, &bytes);
    const bool waiting = queue.oldest_nanos != kNoTime;
    AddGauge(model, waiting ? (now - queue.oldest_nanos) * 1e-9 : 0, &age);
  }
  return {std::move(items), std::move(bytes), std::move(age)};
}

}  // namespace sfmamba::observability
