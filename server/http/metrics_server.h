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

// Serves GET /metrics with all series in Prometheus's text format. The page is
// compressed with gzip if the client accepts gzip. Creating a page takes
// milliseconds. Therefore, all requests that are waiting when the creation of a
// page begins get this page. A request that arrives later gets a newer page.
// Thread-safe.
class MetricsPage {
 public:
  // `metrics` must outlive the page.
  explicit MetricsPage(observability::Metrics* metrics) : metrics_(*metrics) {}

  HttpResponse Answer(const HttpRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  observability::Metrics& metrics_;
  absl::Mutex mu_;
  absl::Time begun_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  std::string text_ ABSL_GUARDED_BY(mu_);
  // The compressed page. Empty until a client that accepts gzip requests the
  // page.
  std::string packed_ ABSL_GUARDED_BY(mu_);
};

// Starts an HTTP server for GET /metrics, with its own threads. Port 0 selects
// a free port. Returns UNAVAILABLE with the address if the address cannot be
// bound. `metrics` must outlive the server.
//
// The Exposer class of prometheus-cpp is unsuitable, because its threads have
// stacks of 100 KiB. The thread-local storage of the GPU libraries alone is
// larger. The threads would fail to start in a process that loads these
// libraries.
absl::StatusOr<std::unique_ptr<HttpServer>> StartMetricsServer(
    const std::string& host, int port, observability::Metrics* metrics);

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_METRICS_SERVER_H_
