#ifndef SFMAMBA_MODEL_TUNING_SCAN_PLAN_CHOOSER_H_
#define SFMAMBA_MODEL_TUNING_SCAN_PLAN_CHOOSER_H_

#include <optional>
#include <utility>

#include "kernels/scan/scan_plan.h"
#include "model/tuning/scan_plan_table.h"

namespace sfmamba::tuning {

// Chooses the plan for each scan of a model on one device. Immutable, so
// thread-safe.
class ScanPlanChooser {
 public:
  // `table` contains measured plans, if there are any. If `deterministic` is
  // true, the table is ignored, and plans with a fixed order of operations are
  // chosen.
  ScanPlanChooser(ScanDevice device, std::optional<ScanPlanTable> table,
                  bool deterministic)
      : device_(std::move(device)),
        table_(std::move(table)),
        deterministic_(deterministic) {}

  // Returns the plan for a scan. Its number of rows says into how many rows the
  // sequences are folded (the paper's B1).
  //
  // If `rows` equals shape.sequences, the caller does not request a folding.
  // The plan is then chosen by ChooseScanPlan(), which uses the table. If
  // `rows` is less, the caller requests a folding into `rows` rows. The result
  // is then a plan of the paper's fold kernel with `rows` rows.
  //
  // A deterministic chooser always returns DeterministicScanPlan(shape). If the
  // caller requests a folding, the plan has `rows` rows.
  kernels::ScanPlan Plan(const ScanShape& shape, int rows) const;

  // Returns the number of rows into which Plan(shape, rows) folds the
  // sequences. If the plan does not fold them, this is shape.sequences.
  int Rows(const ScanShape& shape, int rows) const;

 private:
  ScanDevice device_;
  std::optional<ScanPlanTable> table_;
  bool deterministic_;
};

}  // namespace sfmamba::tuning

#endif  // SFMAMBA_MODEL_TUNING_SCAN_PLAN_CHOOSER_H_
