#ifndef SFMAMBA_SERVER_OBSERVABILITY_METRICS_SERVER_H_
#define SFMAMBA_SERVER_OBSERVABILITY_METRICS_SERVER_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "server/observability/metrics.h"

namespace httplib {
class Server;
}

namespace sfmamba::observability {

// Serves GET /metrics over HTTP, on threads of its own, until destroyed.
//
// prometheus-cpp's own Exposer does not do: its threads have stacks of 100 KiB,
// and the thread-local storage of the libraries for GPUs alone is larger, so
// that they cannot be started in such a process.
class MetricsServer {
 public:
  // Port 0: any free one. UNAVAILABLE, naming the address, if it cannot be
  // bound. `metrics` outlives the server.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const std::string& host, int port, const Metrics& metrics);
  ~MetricsServer();

  int port() const { return port_; }

 private:
  explicit MetricsServer(const Metrics& metrics);

  std::unique_ptr<httplib::Server> http_;
  std::thread thread_;  // Accepts connections; http_ has others to answer.
  int port_ = 0;
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_METRICS_SERVER_H_
