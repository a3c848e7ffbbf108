#include "model/tuning/scan_plan_chooser.h"

namespace sfmamba::tuning {

kernels::ScanPlan ScanPlanChooser::Plan(const ScanShape& shape,
                                        int rows) const {
  const bool folded = rows < shape.sequences;
  kernels::ScanPlan plan;
  // The table is not used, because its plans depend on the batch. Results would
  // then depend on the batch, too.
  if (deterministic_) {
    plan = DeterministicScanPlan(shape);
  } else if (folded) {
    // The number of rows was requested.
    plan.kernel = kernels::ScanPlan::kFold;
  } else {
    plan =
        ChooseScanPlan(table_.has_value() ? &*table_ : nullptr, device_, shape);
  }
  if (folded) plan.rows = rows;
  return plan;
}

int ScanPlanChooser::Rows(const ScanShape& shape, int rows) const {
  const kernels::ScanPlan plan = Plan(shape, rows);
  return plan.rows > 0 ? plan.rows : shape.sequences;
}

}  // namespace sfmamba::tuning
