#include "server/settings/removed_settings.h"

#include "absl/strings/str_cat.h"

namespace sfmamba::server {
namespace {

struct RemovedSetting {
  absl::string_view name;
  absl::string_view instead;
};

// Settings of earlier versions, each with its replacement. The protos reserve
// only the numbers of these settings. If the protos also reserved the names,
// protobuf's parser would silently skip the settings.
constexpr RemovedSetting kRemovedSettings[] = {
    {"canary_percent",
     "divide requests between two Deployments by a weighted route"},
    {"profile_dir", "batches are measured at each start, see profile_budget"},
    {"self_check_period",
     "let a liveness probe call grpc.health.v1.Health at the gRPC port"},
    {"system_shared_memory", "send tensors in the request"},
    {"trace_file",
     "set trace_endpoint to a collector, whose file exporter writes files"},
    {"trace_file_bytes",
     "set trace_endpoint to a collector, whose file exporter writes files"},
};

}  // namespace

std::string WhyRemoved(absl::string_view name) {
  for (const RemovedSetting& setting : kRemovedSettings) {
    if (setting.name == name) {
      return absl::StrCat(name, " was removed: ", setting.instead);
    }
  }
  return "";
}

}  // namespace sfmamba::server
