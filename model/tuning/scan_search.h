#ifndef SFMAMBA_MODEL_TUNING_SCAN_SEARCH_H_
#define SFMAMBA_MODEL_TUNING_SCAN_SEARCH_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/scan/scan_plan.h"
#include "model/tuning/scan_plan_table.h"

namespace sfmamba::tuning {

// The plans worth timing for `shape`, the default among them, none twice.
std::vector<kernels::ScanPlan> CandidatePlans(int multiprocessors,
                                              const ScanShape& shape);

// The lengths of a ragged shape's sequences: evenly from a quarter of its
// length up to all of it, short and long ones in turn.
std::vector<int> RaggedLengths(const ScanShape& shape);

// Microseconds of one scan. INVALID_ARGUMENT: the kernel does not take the
// plan; RESOURCE_EXHAUSTED: the shape does not fit into the device.
using MeasureScan = std::function<absl::StatusOr<double>(
    const ScanShape& shape, const kernels::ScanPlan& plan)>;

struct ScanSearchOptions {
  // Nothing is measured after this time. The shapes that are left, and one that
  // is not finished, have no entry and take the nearest one's plan.
  absl::Duration budget = absl::Seconds(60);
  std::function<absl::Time()> now = absl::Now;
};

// A table with each shape's fastest plan, first shape first. Plans that
// `measure` does not take, and shapes that do not fit, are left out; any other
// error of it is returned.
absl::StatusOr<ScanPlanTable> SearchScanPlans(
    const ScanDevice& device, absl::Span<const ScanShape> shapes,
    const MeasureScan& measure, const ScanSearchOptions& options = {});

}  // namespace sfmamba::tuning

#endif  // SFMAMBA_MODEL_TUNING_SCAN_SEARCH_H_
