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

struct MetricFamilies;  // Defined in metric_families.h.

struct BuildInfo {
  std::string version;
  std::string revision;
  std::string cuda;  // Empty if built without CUDA.
  std::string torch;
};

// Records all metrics of the server. docs/serving.md lists them in the section
// "Metrics".
//
// Thread-safe. Must outlive the ModelMetrics that it creates.
class Metrics {
 public:
  explicit Metrics(const BuildInfo& build);
  ~Metrics();

  // Returns the metrics of one version of a model. Calls with equal arguments
  // return the same object.
  std::shared_ptr<ModelMetrics> Model(absl::string_view model,
                                      absl::string_view version)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the metrics of a device, such as "cpu" or "gpu0". Calls with equal
  // names return the same object.
  std::shared_ptr<DeviceMetrics> Device(absl::string_view device)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the metrics for requests whose model is not known, for example
  // because no model has the requested name. The label "model" of these metrics
  // has the value "_unknown". The requested name is not used as the value,
  // because callers must not be able to create time series.
  ModelMetrics& UnknownModel() { return *unknown_; }
  // Returns the metrics for requests that concern no single model.
  ModelMetrics& NoModel() { return *none_; }

  // Adds a request to the number of requests in flight. `bytes` is the size of
  // the request's message.
  void RequestStarted(Method method, int64_t bytes);
  // Subtracts a request from the number of requests in flight. The request's
  // result is counted by ModelMetrics::RequestDone().
  void RequestFinished(Method method);

  // ImageDecoded() records a decoded image with `pixels` pixels. ImageFailed()
  // records an image that could not be decoded. `format` is "jpeg", "png",
  // "webp", "pixels", "tensor" or "unknown".
  void ImageDecoded(absl::string_view format, int64_t pixels);
  void ImageFailed(absl::string_view format, absl::string_view reason);

  // These functions report that the decode pool accepted an image, started to
  // decode it, or finished decoding it.
  void DecodeQueued();
  void DecodeStarted();
  void DecodeDone();

  // Adds `lines` to the number of dropped log lines.
  void LogLinesDropped(int64_t lines);
  // SpansExported() adds `spans` to the number of exported spans.
  // SpansDropped() adds `spans` to the number of dropped spans.
  void SpansExported(int64_t spans);
  void SpansDropped(int64_t spans);
  // These functions report that the server closed a connection because too many
  // connections were open.
  void GrpcConnectionRefused();
  void HttpConnectionRefused();
  // Reports that the server refused a call because the caller may not call the
  // method. For example, the caller's token is unknown. `reason` is the
  // ErrorInfo.reason of the error.
  void CallRefused(absl::string_view reason);
  // Reports that a TLS handshake on the gRPC port failed.
  void TlsHandshakeFailed();
  // Reports that a trusted proxy forwarded a malformed address.
  void ForwardMalformed();
  // Reports that the server tried to reload files. `what` is "tokens" for the
  // token file and "tls" for the TLS files. If `taken` is true, the server now
  // uses the new contents. If `taken` is false, the reload failed and the
  // server still uses the old contents.
  void FilesReloaded(absl::string_view what, bool taken);
  void CertificateExpires(absl::Time time);
  // Makes Collect() report the size of `budget` and how much memory requests
  // hold. `budget` must outlive this object.
  void ShowMemory(const server::MemoryBudget& budget) { memory_ = &budget; }

  // Returns the current values of all metrics. Called by each scrape.
  std::vector<prometheus::MetricFamily> Collect() const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Removes the metrics of each model and device if no object except this one
  // owns these metrics. Also removes their time series.
  void Forget() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Updates the gauges of queues, devices and memory.
  void Refresh() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Updates the gauges of waiting and running requests.
  void ShowRequests() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::unique_ptr<MetricFamilies> families_;
  std::atomic<const server::MemoryBudget*> memory_{nullptr};

  // Guards the maps below. Collect() holds this mutex until it has read all
  // metrics of `families_`. A concurrent Collect() or Model() can therefore not
  // clear or remove time series meanwhile.
  mutable absl::Mutex mu_;
  mutable std::map<std::string, std::shared_ptr<ModelSeries>> series_
      ABSL_GUARDED_BY(mu_);  // The key is the model's name.
  mutable std::map<std::pair<std::string, std::string>,
                   std::shared_ptr<ModelMetrics>>
      models_ ABSL_GUARDED_BY(mu_);  // The key is (model, version).
  mutable std::map<std::string, std::shared_ptr<DeviceMetrics>> devices_
      ABSL_GUARDED_BY(mu_);  // The key is the device's name.

  const std::shared_ptr<ModelMetrics> unknown_;
  const std::shared_ptr<ModelMetrics> none_;
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_METRICS_H_
