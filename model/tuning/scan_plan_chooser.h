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
  // `table` contains measured plans, if there are any. If `deterministic`, the
  // table is ignored, and plans with a fixed order of operations are chosen.
  ScanPlanChooser(ScanDevice device, std::optional<ScanPlanTable> table,
                  bool deterministic)
      : device_(std::move(device)),
        table_(std::move(table)),
        deterministic_(deterministic) {}

  // Returns the plan for a scan. If `rows` equals shape.sequences, the table
  // determines the number of rows. If `rows` is less, the caller requests a
  // folding into `rows` rows (SF-Mamba's B1). The plan is then the paper's fold
  // kernel, or the deterministic plan, with this number of rows.
  kernels::ScanPlan Plan(const ScanShape& shape, int rows) const;

  // Returns the number of rows of Plan(shape, rows).
  int Rows(const ScanShape& shape, int rows) const;

 private:
  ScanDevice device_;
  std::optional<ScanPlanTable> table_;
  bool deterministic_;
};

}  // namespace sfmamba::tuning

#endif  // SFMAMBA_MODEL_TUNING_SCAN_PLAN_CHOOSER_H_
