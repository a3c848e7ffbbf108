#include "server/observability/load_meter.h"

#include <algorithm>
#include <cmath>

namespace sfmamba::observability {

Load LoadMeter::RequestEnded(bool answered, absl::Duration backlog,
                             absl::Time now) {
  const absl::Duration passed = std::max(now - last_, absl::ZeroDuration());
  last_ = std::max(last_, now);
  const double kept = std::exp(-absl::FDivDuration(passed, kMemory));
  const double utilization =
      std::clamp(absl::FDivDuration(backlog, target_), 0.0, kMaxUtilization);
  load_.utilization += (1 - kept) * (utilization - load_.utilization);
  load_.answers_per_second *= kept;
  load_.errors_per_second *= kept;
  double& rate = answered ? load_.answers_per_second : load_.errors_per_second;
  rate += 1 / absl::ToDoubleSeconds(kMemory);
  return load_;
}

}  // namespace sfmamba::observability
