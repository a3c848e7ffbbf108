#ifndef SFMAMBA_MODEL_TUNING_INCREMENTAL_TUNER_H_
#define SFMAMBA_MODEL_TUNING_INCREMENTAL_TUNER_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "model/scan_tuning.h"
#include "model/tuning/scan_plan_table.h"
#include "model/tuning/scan_search.h"

namespace sfmamba::tuning {

// A GPU's fold table, to which scans are added as they are needed. See
// model::ScanTuner, which this implements for any device and clock. Not
// thread-safe.
class IncrementalTuner {
 public:
  // Makes the function that measures. It is called for each model of which
  // something is to be measured.
  using MakeTimer = std::function<absl::StatusOr<MeasureScan>()>;

  // Reads the file and returns its error if it exists but is no valid table.
  static absl::StatusOr<std::unique_ptr<IncrementalTuner>> Create(
      const model::ScanTuner::Options& options, const ScanDevice& device,
      MakeTimer make_timer, std::function<absl::Time()> now = absl::Now);

  // Measures the unknown ones of `scans` within the budget, in order. Returns
  // all known plans. If measuring or writing fails, the plans known so far are
  // returned and options.failed is called.
  ScanPlanTable TableFor(absl::Span<const ScanShape> scans);

 private:
  IncrementalTuner(const model::ScanTuner::Options& options,
                   ScanPlanTable table, bool keeps, MakeTimer make_timer,
                   std::function<absl::Time()> now);

  // Adds to table_ what there is time for.
  absl::Status Measure(absl::Span<const ScanShape> scans);
  void WriteBack();

  const model::ScanTuner::Options options_;
  const MakeTimer make_timer_;
  const std::function<absl::Time()> now_;
  ScanPlanTable table_;
  const bool keeps_;  // Whether the file holds the table or is to hold it.
};

}  // namespace sfmamba::tuning

#endif  // SFMAMBA_MODEL_TUNING_INCREMENTAL_TUNER_H_
