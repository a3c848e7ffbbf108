#include "server/metrics_server.h"

#include <exception>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "prometheus/collectable.h"

namespace sfmamba {
namespace {

class MetricsCollectable : public prometheus::Collectable {
 public:
  explicit MetricsCollectable(const Metrics& metrics) : metrics_(metrics) {}
  std::vector<prometheus::MetricFamily> Collect() const override {
    return metrics_.Collect();
  }

 private:
  const Metrics& metrics_;
};

}  // namespace

MetricsServer::MetricsServer(std::unique_ptr<prometheus::Exposer> exposer,
                             const Metrics& metrics)
    : collectable_(std::make_shared<MetricsCollectable>(metrics)),
      exposer_(std::move(exposer)) {
  exposer_->RegisterCollectable(collectable_);
}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const std::string& host, int port, const Metrics& metrics) {
  // civetweb writes an IPv6 address in brackets.
  const bool ipv6 = absl::StrContains(host, ':') && host.front() != '[';
  const std::string address =
      absl::StrCat(ipv6 ? absl::StrCat("[", host, "]") : host, ":", port);
  try {
    return absl::WrapUnique(new MetricsServer(
        std::make_unique<prometheus::Exposer>(address, /*num_threads=*/2),
        metrics));
  } catch (const std::exception&) {  // Its text says no more than this.
    return absl::UnavailableError(absl::StrCat(
        "cannot bind the metrics port: ", address,
        " is in use, not an address of this machine, or not allowed"));
  }
}

}  // namespace sfmamba
