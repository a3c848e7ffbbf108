#include "server/observability/metrics.h"

#include <algorithm>
#include <iterator>

#include "base/steady_clock.h"
#include "server/observability/metric_families.h"

namespace sfmamba::observability {
namespace {

using prometheus::MetricFamily;

// Removes the entries that have no owner except the map. The caller must hold
// the map's lock. Entries are copied only under this lock, so no other thread
// can become an owner meanwhile.
template <typename Map>
void EraseUnowned(Map* map) {
  for (auto it = map->begin(); it != map->end();) {
    it = it->second.use_count() == 1 ? map->erase(it) : std::next(it);
  }
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
  Forget();
  std::shared_ptr<ModelMetrics>& metrics =
      models_[{std::string(model), std::string(version)}];
  if (metrics != nullptr) return metrics;
  std::shared_ptr<ModelSeries>& series = series_[std::string(model)];
  if (series == nullptr) {
    series = std::make_shared<ModelSeries>(*families_, std::string(model));
  }
  metrics.reset(new ModelMetrics(*families_, series, version));
  return metrics;
}

std::shared_ptr<DeviceMetrics> Metrics::Device(absl::string_view device) {
  absl::MutexLock lock(&mu_);
  std::shared_ptr<DeviceMetrics>& metrics = devices_[std::string(device)];
  if (metrics == nullptr) metrics = std::make_shared<DeviceMetrics>();
  return metrics;
}

void Metrics::RequestStarted(Method method, int64_t bytes) {
  families_->in_flight.Of({MethodName(method)}).Increment();
  families_->request_bytes.Of({MethodName(method)}).Observe(bytes);
}

void Metrics::RequestFinished(Method method) {
  families_->in_flight.Of({MethodName(method)}).Decrement();
}

void Metrics::ImageDecoded(absl::string_view format, int64_t pixels) {
  families_->image_pixels.Of({format}).Observe(pixels);
}

void Metrics::ImageFailed(absl::string_view format, absl::string_view reason) {
  families_->decode_failures.Of({format, reason}).Increment();
}

void Metrics::DecodeQueued() { families_->decode_queue.Of().Increment(); }

void Metrics::DecodeStarted() {
  families_->decode_queue.Of().Decrement();
  families_->decode_busy.Of().Increment();
}

void Metrics::DecodeDone() { families_->decode_busy.Of().Decrement(); }

void Metrics::LogLinesDropped(int64_t lines) {
  families_->log_lines_dropped.Of().Increment(lines);
}

void Metrics::SpansExported(int64_t spans) {
  families_->spans_exported.Of().Increment(spans);
}

void Metrics::SpansDropped(int64_t spans) {
  families_->spans_dropped.Of().Increment(spans);
}

void Metrics::GrpcConnectionRefused() {
  families_->connections_refused.Of({"grpc"}).Increment();
}

void Metrics::HttpConnectionRefused() {
  families_->connections_refused.Of({"http"}).Increment();
}

void Metrics::CallRefused(absl::string_view reason) {
  families_->unauthorized.Of({reason}).Increment();
}

void Metrics::TlsHandshakeFailed() {
  families_->handshake_failures.Of().Increment();
}

void Metrics::ForwardMalformed() {
  families_->malformed_forwards.Of().Increment();
}

void Metrics::FilesReloaded(absl::string_view what, bool taken) {
  families_->file_reloads.Of({what, taken ? "taken" : "kept_old"}).Increment();
}

void Metrics::CertificateExpires(absl::Time time) {
  families_->certificate_expiry.Of().Set(
      absl::ToDoubleSeconds(time - absl::UnixEpoch()));
}

std::vector<MetricFamily> Metrics::Collect() const {
  std::vector<MetricFamily> all;
  {
    absl::MutexLock lock(&mu_);
    Forget();
    Refresh();
    all = families_->registry.Collect();
  }
  for (MetricFamily& family : CollectProcess()) all.push_back(family);
  return all;
}

void Metrics::Forget() const {
  EraseUnowned(&models_);
  EraseUnowned(&series_);
  EraseUnowned(&devices_);
}

void Metrics::Refresh() const {
  for (const auto& [name, series] : series_) {
    for (Series<Gauge>* gauges :
         {&series->queue_items, &series->queue_bytes, &series->queue_age,
          &series->predicted_wait, &series->backlog, &series->active_clients}) {
      gauges->Clear();
    }
  }
  const absl::Time now = base::SteadyNow();
  for (const auto& [key, model] : models_) {
    const bool is_version = !key.second.empty();
    if (is_version) model->ShowQueue(now);
  }
  ShowRequests();
  families_->device_busy.Clear();
  for (const auto& [device, metrics] : devices_) {
    families_->device_busy.Of({device}).Set(metrics->BusyShare());
  }
  const server::MemoryBudget* const memory = memory_.load();
  if (memory == nullptr) return;
  families_->memory_budget.Of().Set(memory->bytes());
  for (int i = 0; i < server::kMemoryUseCount; ++i) {
    const auto use = static_cast<server::MemoryUse>(i);
    families_->memory_held.Of({server::MemoryUseName(use)})
        .Set(memory->held(use));
  }
}

void Metrics::ShowRequests() const {
  double in_flight = 0;
  for (const Method method : {Method::kClassify, Method::kDetect,
                              Method::kSegment, Method::kStreamPredict,
                              Method::kModelInfer, Method::kModelStreamInfer}) {
    in_flight += families_->in_flight.Of({MethodName(method)}).Value();
  }
  double images = families_->decode_queue.Of().Value();
  for (const auto& [key, model] : models_) images += model->waiting_items();
  const double waiting = std::min(images, in_flight);
  families_->requests_waiting.Of().Set(waiting);
  families_->requests_running.Of().Set(in_flight - waiting);
}

}  // namespace sfmamba::observability
