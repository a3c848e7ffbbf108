#ifndef SFMAMBA_SERVER_HTTP_METRICS_SERVER_H_
#define SFMAMBA_SERVER_HTTP_METRICS_SERVER_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/http/exchange.h"
#include "server/http/http_server.h"
#include "server/observability/metrics.h"

namespace sfmamba::http {

// Answers GET /metrics: all series in Prometheus's text format, packed if the
// client takes that. A page takes milliseconds, so that requests share one that
// was begun after they came: a thousand that wait cost little more than one.
// Thread-safe.
class MetricsPage {
 public:
  // `metrics` outlives the page.
  explicit MetricsPage(observability::Metrics* metrics) : metrics_(*metrics) {}

  HttpResponse Answer(const HttpRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  observability::Metrics& metrics_;
  absl::Mutex mu_;
  absl::Time begun_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  std::string text_ ABSL_GUARDED_BY(mu_);
  std::string packed_ ABSL_GUARDED_BY(mu_);  // Empty until it is asked for.
};

// Serves GET /metrics over HTTP, on threads of its own. Port 0: any free one.
// UNAVAILABLE, naming the address, if it cannot be bound. `metrics` outlives
// the server.
//
// prometheus-cpp's own Exposer does not do: its threads have stacks of 100 KiB,
// and the thread-local storage of the libraries for GPUs alone is larger, so
// that they cannot be started in such a process.
absl::StatusOr<std::unique_ptr<HttpServer>> StartMetricsServer(
    const std::string& host, int port, observability::Metrics* metrics);

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_METRICS_SERVER_H_
