#ifndef SFMAMBA_SERVER_OBSERVABILITY_PROCESS_METRICS_H_
#define SFMAMBA_SERVER_OBSERVABILITY_PROCESS_METRICS_H_

#include <vector>

#include "prometheus/metric_family.h"

namespace sfmamba::observability {

// The customary process_* series, read from /proc, and the limit of the
// process's memory. What cannot be read is left out.
std::vector<prometheus::MetricFamily> CollectProcess();

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_PROCESS_METRICS_H_
