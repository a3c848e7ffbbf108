#ifndef SFMAMBA_SERVER_OBSERVABILITY_METRICS_H_
#define SFMAMBA_SERVER_OBSERVABILITY_METRICS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "prometheus/metric_family.h"
#include "server/observability/device_metrics.h"
#include "server/observability/metric_names.h"
#include "server/observability/model_metrics.h"
#include "server/shares/memory_budget.h"

namespace sfmamba::observability {

struct MetricFamilies;  // In metric_families.h.

struct BuildInfo {
  std::string version;
  std::string revision;
  std::string cuda;  // Empty: built without.
  std::string torch;
};

// All metrics of the server: their names, help and buckets, and the verbs that
// count. docs/serving.md, "Metrics", lists them.
//
// Thread-safe. Outlives all uses of the ModelMetrics that it makes.
class Metrics {
 public:
  explicit Metrics(const BuildInfo& build);
  ~Metrics();

  // The series of a version; calls with equal arguments share one object.
  std::shared_ptr<ModelMetrics> Model(absl::string_view model,
                                      absl::string_view version)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The series of a device, such as "cpu" or "gpu0"; calls with equal names
  // share one object.
  std::shared_ptr<DeviceMetrics> Device(absl::string_view device)
      ABSL_LOCKS_EXCLUDED(mu_);
  // For requests that name no known model. They are counted as "_unknown", so
  // that callers cannot make labels.
  ModelMetrics& UnknownModel() { return *unknown_; }
  // For requests about no single model.
  ModelMetrics& NoModel() { return *none_; }

  void RequestStarted(Method method, int64_t bytes);
  void RequestFinished(Method method);  // RequestDone counts it.

  // `format` is "jpeg", "png", "webp", "pixels", "tensor" or "unknown".
  void ImageDecoded(absl::string_view format, int64_t pixels);
  void ImageFailed(absl::string_view format, absl::string_view reason);

  // A decode job was accepted by the pool; it began; it ended.
  void DecodeQueued();
  void DecodeStarted();
  void DecodeDone();

  // Lines of the log were dropped since the last call.
  void LogLinesDropped(int64_t lines);
  // Spans were handed over or dropped since the last call.
  void SpansExported(int64_t spans);
  void SpansDropped(int64_t spans);
  // A connection was closed at once or early because there were too many.
  void GrpcConnectionRefused();
  void HttpConnectionRefused();
  // A call was refused for `reason`, an ErrorInfo.reason: its caller may not
  // make it.
  void CallRefused(absl::string_view reason);
  // A TLS connection to the gRPC port failed before it was one.
  void TlsHandshakeFailed();
  // A trusted proxy named an address that cannot be read.
  void ForwardMalformed();
  // The files of `what`, "tokens" or "tls", have changed, and were taken or
  // not.
  void FilesReloaded(absl::string_view what, bool taken);
  void CertificateExpires(absl::Time time);
  // From now on Collect() shows what requests hold of `budget`, which outlives
  // this.
  void ShowMemory(const server::MemoryBudget& budget) { memory_ = &budget; }

  // Returns all series, for a scraper.
  std::vector<prometheus::MetricFamily> Collect() const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Lets go of what has no owner outside any more, and its series with it.
  void Forget() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sets the gauges that are computed now: of queues, devices and memory.
  void Refresh() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sets the gauges of waiting and running requests.
  void ShowRequests() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::unique_ptr<MetricFamilies> families_;
  std::atomic<const server::MemoryBudget*> memory_{nullptr};

  // Held during a scrape, too.
  mutable absl::Mutex mu_;
  mutable std::map<std::string, std::shared_ptr<ModelSeries>> series_
      ABSL_GUARDED_BY(mu_);  // By model.
  mutable std::map<std::pair<std::string, std::string>,
                   std::shared_ptr<ModelMetrics>>
      models_ ABSL_GUARDED_BY(mu_);  // By model and version.
  mutable std::map<std::string, std::shared_ptr<DeviceMetrics>> devices_
      ABSL_GUARDED_BY(mu_);  // By name.

  const std::shared_ptr<ModelMetrics> unknown_;
  const std::shared_ptr<ModelMetrics> none_;
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_METRICS_H_
