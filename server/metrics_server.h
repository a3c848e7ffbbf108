#ifndef SFMAMBA_SERVER_METRICS_SERVER_H_
#define SFMAMBA_SERVER_METRICS_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "prometheus/exposer.h"
#include "server/metrics.h"

namespace sfmamba {

// Serves GET /metrics over HTTP, on threads of its own, until destroyed.
class MetricsServer {
 public:
  // Port 0: any free one. UNAVAILABLE, naming the address, if it cannot be
  // bound. `metrics` outlives the server.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const std::string& host, int port, const Metrics& metrics);

  int port() const { return exposer_->GetListeningPorts().front(); }

 private:
  MetricsServer(std::unique_ptr<prometheus::Exposer> exposer,
                const Metrics& metrics);

  std::shared_ptr<prometheus::Collectable> collectable_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace sfmamba

#endif  // SFMAMBA_SERVER_METRICS_SERVER_H_
