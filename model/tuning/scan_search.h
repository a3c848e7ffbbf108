#ifndef SFMAMBA_MODEL_TUNING_SCAN_SEARCH_H_
#define SFMAMBA_MODEL_TUNING_SCAN_SEARCH_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/scan/scan_plan.h"
#include "model/tuning/scan_plan_table.h"

namespace sfmamba::tuning {

// Returns the plans that are worth timing for `shape`, without duplicates. The
// default plan is among them.
std::vector<kernels::ScanPlan> CandidatePlans(int multiprocessors,
                                              const ScanShape& shape);

// Returns the lengths of a ragged shape's sequences, which differ in length.
// The lengths are evenly spaced from a quarter of shape.length to shape.length.
// Short and long sequences alternate.
std::vector<int> RaggedLengths(const ScanShape& shape);

// Measures one scan. Returns its time in microseconds. Returns INVALID_ARGUMENT
// if the kernel does not support the plan, and RESOURCE_EXHAUSTED if the shape
// does not fit into the device's memory.
using MeasureScan = std::function<absl::StatusOr<double>(
    const ScanShape& shape, const kernels::ScanPlan& plan)>;

struct ScanSearchOptions {
  // The time limit, counted from the start of the search. No measurement starts
  // after it. A shape whose plans have not all been measured by then gets no
  // entry. Its scans use the plan of the nearest entry.
  absl::Duration budget = absl::Seconds(60);
  std::function<absl::Time()> now = absl::Now;
};

// Returns a table with each shape's fastest plan. Shapes are measured in order.
// If `measure` returns INVALID_ARGUMENT, the plan is skipped. If it returns
// RESOURCE_EXHAUSTED, the remaining plans of the shape are skipped. Other
// errors are returned.
absl::StatusOr<ScanPlanTable> SearchScanPlans(
    const ScanDevice& device, absl::Span<const ScanShape> shapes,
    const MeasureScan& measure, const ScanSearchOptions& options = {});

// Like SearchScanPlans(), but also writes the table to `path` and replaces an
// existing file.
absl::StatusOr<ScanPlanTable> TuneToFile(const ScanDevice& device,
                                         absl::Span<const ScanShape> shapes,
                                         const MeasureScan& measure,
                                         const ScanSearchOptions& options,
                                         const std::string& path);

}  // namespace sfmamba::tuning

#endif  // SFMAMBA_MODEL_TUNING_SCAN_SEARCH_H_
