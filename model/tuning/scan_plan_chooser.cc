#include "model/tuning/scan_plan_chooser.h"

namespace sfmamba::tuning {

kernels::ScanPlan ScanPlanChooser::Plan(const ScanShape& shape,
                                        int rows) const {
  const bool folded = rows < shape.sequences;
  kernels::ScanPlan plan;
  // A deterministic chooser ignores the table. The table's plans depend on the
  // size of the batch, so an image's result would also depend on it.
  if (deterministic_) {
    plan = DeterministicScanPlan(shape);
  } else if (folded) {
    // The caller requests a folding into `rows` rows, which is done with the
    // paper's fold kernel.
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
