#ifndef SFMAMBA_SERVER_HTTP_METRICS_SERVER_H_
#define SFMAMBA_SERVER_HTTP_METRICS_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/http/exchange.h"
#include "server/http/http_server.h"
#include "server/observability/metrics.h"

namespace sfmamba::http {

// The answer to GET /metrics: all series in Prometheus's text format, packed if
// the client takes that.
HttpResponse MetricsResponse(const HttpRequest& request,
                             observability::Metrics& metrics);

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
