#ifndef SFMAMBA_MODEL_TUNING_SCAN_PLAN_CHOOSER_H_
#define SFMAMBA_MODEL_TUNING_SCAN_PLAN_CHOOSER_H_

#include <optional>
#include <utility>

#include "kernels/scan/scan_plan.h"
#include "model/tuning/scan_plan_table.h"

namespace sfmamba::tuning {

// Chooses how a model's scans run on its device. Immutable, so thread-safe.
class ScanPlanChooser {
 public:
  // `table` is what was measured, if anything was; `deterministic` passes it
  // over for plans whose order of operations is fixed.
  ScanPlanChooser(ScanDevice device, std::optional<ScanPlanTable> table,
                  bool deterministic)
      : device_(std::move(device)),
        table_(std::move(table)),
        deterministic_(deterministic) {}

  // `rows` below shape.sequences is a folding that was asked for (SF-Mamba's
  // B1): the paper's kernel folds so, or a deterministic one. As many rows as
  // sequences leave the choice to the table.
  kernels::ScanPlan Plan(const ScanShape& shape, int rows) const;

  // Rows that such a plan has.
  int Rows(const ScanShape& shape, int rows) const;

 private:
  ScanDevice device_;
  std::optional<ScanPlanTable> table_;
  bool deterministic_;
};

}  // namespace sfmamba::tuning

#endif  // SFMAMBA_MODEL_TUNING_SCAN_PLAN_CHOOSER_H_
