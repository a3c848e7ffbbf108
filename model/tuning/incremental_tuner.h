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

// A GPU's fold table, the table of measured scan plans. Scans are added to it
// when models need them. This implements model::ScanTuner for any device and
// any clock. Not thread-safe.
class IncrementalTuner {
 public:
  // Returns the function that measures scans. Called once for each model that
  // has scans to measure.
  using MakeTimer = std::function<absl::StatusOr<MeasureScan>()>;

  // Reads the file. Returns an error if the file exists but is not a valid
  // table.
  static absl::StatusOr<std::unique_ptr<IncrementalTuner>> Create(
      const model::ScanTuner::Options& options, const ScanDevice& device,
      MakeTimer make_timer, std::function<absl::Time()> now = absl::Now);

  // Measures the scans that the table lacks, in this order and within the
  // budget. Returns all known plans. If measuring or writing fails, calls
  // options.failed and returns the plans that are known by then.
  ScanPlanTable TableFor(absl::Span<const ScanShape> scans);

 private:
  IncrementalTuner(const model::ScanTuner::Options& options,
                   ScanPlanTable table, bool keeps, MakeTimer make_timer,
                   std::function<absl::Time()> now);

  // Measures scans and adds them to table_, as long as there is time.
  absl::Status Measure(absl::Span<const ScanShape> scans);
  void WriteBack();

  const model::ScanTuner::Options options_;
  const MakeTimer make_timer_;
  const std::function<absl::Time()> now_;
  ScanPlanTable table_;
  const bool keeps_;  // Whether the table is written to the file.
};

}  // namespace sfmamba::tuning

#endif  // SFMAMBA_MODEL_TUNING_INCREMENTAL_TUNER_H_
