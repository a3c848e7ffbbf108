#include "server/observability/metrics.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/steady_clock.h"
#include "server/observability/metric_families.h"
#include "server/observability/model_series.h"
#include "server/observability/process_metrics.h"

namespace sfmamba::observability {
namespace {

using prometheus::MetricFamily;
using Labels = std::vector<prometheus::ClientMetric::Label>;

std::string Label(absl::string_view text) { return std::string(text); }

MetricFamily GaugeFamily(absl::string_view name, absl::string_view help) {
  MetricFamily family;
  family.name = std::string(name);
  family.help = std::string(help);
  family.type = prometheus::MetricType::Gauge;
  return family;
}

void AddGauge(Labels labels, double value, MetricFamily* family) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  metric.gauge.value = value;
  family->metric.push_back(std::move(metric));
}

int FormatIndex(absl::string_view format) {
  int i = 0;
  for (const char* name : {"jpeg", "png", "webp", "pixels", "tensor"}) {
    if (format == name) return i;
    ++i;
  }
  return i;  // "unknown"
}

// Returns the living ones of `slots`. The copies keep them alive, so that none
// is destroyed under the lock that guards the slots.
template <typename Key, typename T>
std::vector<std::pair<Key, std::shared_ptr<T>>> Living(
    const absl::flat_hash_map<Key, std::weak_ptr<T>>& slots) {
  std::vector<std::pair<Key, std::shared_ptr<T>>> living;
  for (const auto& [key, slot] : slots) {
    if (std::shared_ptr<T> value = slot.lock()) {
      living.emplace_back(key, std::move(value));
    }
  }
  return living;
}

}  // namespace

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
  std::weak_ptr<ModelSeries>& shared_slot = shared_[model];
  std::shared_ptr<ModelSeries> shared = shared_slot.lock();
  if (shared == nullptr) {
    shared = std::make_shared<ModelSeries>(*families_, model);
    shared_slot = shared;
  }
  std::shared_ptr<ModelMetrics> made(
      new ModelMetrics(std::move(shared), version));
  slot = made;
  return made;
}

std::shared_ptr<DeviceMetrics> Metrics::Device(absl::string_view device) {
  absl::MutexLock lock(&mu_);
  std::weak_ptr<DeviceMetrics>& slot = devices_[device];
  std::shared_ptr<DeviceMetrics> made = slot.lock();
  if (made == nullptr) slot = made = std::make_shared<DeviceMetrics>();
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
  std::atomic<ShardedHistogram*>& made =
      families_->pixels_by_format[FormatIndex(format)];
  ShardedHistogram* histogram = made.load(std::memory_order_acquire);
  if (histogram == nullptr) {
    // Add() returns the same histogram to two threads that come here at once.
    histogram = &families_->image_pixels.Add({{"format", Label(format)}},
                                             PowersOfTwo(16, 26));
    made.store(histogram, std::memory_order_release);
  }
  histogram->Observe(pixels);
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

void Metrics::LogLinesDropped(int64_t lines) {
  families_->lines_dropped.Increment(lines);
}

void Metrics::SpansExported(int64_t spans) {
  families_->spans_exported.Increment(spans);
}

void Metrics::SpansDropped(int64_t spans) {
  families_->spans_dropped.Increment(spans);
}

void Metrics::GrpcConnectionRefused() {
  families_->grpc_connections_refused.Increment();
}

void Metrics::HttpConnectionRefused() {
  families_->http_connections_refused.Increment();
}

void Metrics::CallRefused(absl::string_view reason) {
  families_->unauthorized.Add({{"reason", Label(reason)}}).Increment();
}

void Metrics::TlsHandshakeFailed() {
  families_->handshake_failures.Increment();
}

void Metrics::FilesReloaded(absl::string_view what, bool taken) {
  families_->file_reloads
      .Add({{"files", Label(what)}, {"outcome", taken ? "taken" : "kept_old"}})
      .Increment();
}

void Metrics::CertificateExpires(absl::Time time) {
  families_->certificate_expiry.Add({}).Set(
      absl::ToDoubleSeconds(time - absl::UnixEpoch()));
}

std::vector<MetricFamily> Metrics::Collect() const {
  std::vector<MetricFamily> all = families_->registry.Collect();
  // The registry does not hold what follows: gauges that are computed now, and
  // the histograms, which are sharded.
  std::vector<MetricFamily> own = CollectQueues();
  own.push_back(CollectDevices());
  for (const HistogramFamily& family : families_->histograms) {
    own.push_back(family.Collect());
  }
  for (MetricFamily& family : CollectMemory()) own.push_back(std::move(family));
  for (MetricFamily& family : CollectProcess()) own.push_back(family);
  for (MetricFamily& family : own) {
    if (!family.metric.empty()) all.push_back(std::move(family));
  }
  return all;
}

std::vector<MetricFamily> Metrics::CollectQueues() const {
  std::vector<std::pair<std::pair<std::string, std::string>,
                        std::shared_ptr<ModelMetrics>>>
      models;
  {
    absl::MutexLock lock(&mu_);
    models = Living(models_);
  }
  struct Queue {
    int64_t items = 0;
    int64_t bytes = 0;
    int64_t oldest_nanos = ModelMetrics::kNoTime;
  };
  struct Queues {
    std::array<Queue, server::kPriorityCount> by_priority;
    double predicted_wait = -1;
  };
  absl::flat_hash_map<std::string, Queues> all;
  for (const auto& [key, model] : models) {
    if (key.second.empty()) continue;  // Only versions have queues.
    Queues& queues = all[key.first];
    for (int i = 0; i < server::kPriorityCount; ++i) {
      Queue& sum = queues.by_priority[i];
      const ModelMetrics::Queue& queue = model->queues_[i];
      sum.items += queue.items.load(std::memory_order_relaxed);
      sum.bytes += queue.bytes.load(std::memory_order_relaxed);
      // A model's versions are summed; its oldest image is the oldest of any.
      sum.oldest_nanos = std::min(
          sum.oldest_nanos, queue.oldest_nanos.load(std::memory_order_relaxed));
    }
    queues.predicted_wait =
        std::max(queues.predicted_wait,
                 model->predicted_wait_.load(std::memory_order_relaxed));
  }
  MetricFamily items =
      GaugeFamily("sfmamba_queue_items", "Images waiting for a batch.");
  MetricFamily bytes =
      GaugeFamily("sfmamba_queue_bytes", "Size of the images waiting.");
  MetricFamily age = GaugeFamily("sfmamba_queue_oldest_age_seconds",
                                 "How long the oldest image has waited.");
  MetricFamily wait =
      GaugeFamily("sfmamba_predicted_wait_seconds",
                  "What the least urgent image of normal priority would wait.");
  const int64_t now = absl::ToUnixNanos(base::SteadyNow());
  for (const auto& [model, queues] : all) {
    for (int i = 0; i < server::kPriorityCount; ++i) {
      const Queue& queue = queues.by_priority[i];
      const std::string priority(
          PriorityName(static_cast<server::Priority>(i)));
      const Labels labels = {{"model", model}, {"priority", priority}};
      AddGauge(labels, queue.items, &items);
      AddGauge(labels, queue.bytes, &bytes);
      const bool waiting = queue.oldest_nanos != ModelMetrics::kNoTime;
      AddGauge(labels, waiting ? (now - queue.oldest_nanos) * 1e-9 : 0, &age);
    }
    if (queues.predicted_wait >= 0) {
      AddGauge({{"model", model}}, queues.predicted_wait, &wait);
    }
  }
  return {std::move(items), std::move(bytes), std::move(age), std::move(wait)};
}

std::vector<MetricFamily> Metrics::CollectMemory() const {
  const server::MemoryBudget* const memory = memory_.load();
  if (memory == nullptr) return {};
  MetricFamily budget =
      GaugeFamily("sfmamba_memory_budget_bytes",
                  "Memory that all requests together may hold.");
  AddGauge({}, memory->bytes(), &budget);
  MetricFamily held = GaugeFamily("sfmamba_memory_held_bytes",
                                  "Memory that requests hold, by what for.");
  for (int i = 0; i < server::kMemoryUseCount; ++i) {
    const auto use = static_cast<server::MemoryUse>(i);
    AddGauge({{"what", Label(server::MemoryUseName(use))}}, memory->held(use),
             &held);
  }
  return {std::move(budget), std::move(held)};
}

MetricFamily Metrics::CollectDevices() const {
  std::vector<std::pair<std::string, std::shared_ptr<DeviceMetrics>>> devices;
  {
    absl::MutexLock lock(&mu_);
    devices = Living(devices_);
  }
  MetricFamily busy =
      GaugeFamily("sfmamba_device_busy_ratio",
                  "Share of the last 5 s in which the device ran a batch.");
  for (const auto& [device, metrics] : devices) {
    AddGauge({{"device", device}}, metrics->BusyShare(), &busy);
  }
  return busy;
}

}  // namespace sfmamba::observability
