#ifndef SFMAMBA_MODEL_TUNING_MODEL_SCANS_H_
#define SFMAMBA_MODEL_TUNING_MODEL_SCANS_H_

#include <vector>

#include "absl/types/span.h"
#include "model/config.h"
#include "model/scan_tuning.h"
#include "model/tuning/scan_shape.h"

namespace sfmamba::tuning {

// Returns the shapes of a model's scans that a ScanPlanTable should contain,
// without duplicates. Inputs have the configured size. Batches have 1, 2, 4 and
// so on up to `max_batch` images. The shapes are computed as if
// config.backbone.scan were ScanMode::kUni, because the other modes exist only
// for the paper's ablations. Returns no shapes for VMamba, because its scans
// run on CrossScanCuda(), and the table is only for SelectiveScanCuda().
std::vector<ScanShape> ScanShapes(const model::ModelConfig& config,
                                  int max_batch);

// Returns the shapes of the scans of all `models`, without duplicates.
std::vector<ScanShape> ScanShapes(absl::Span<const model::ModelToTune> models);

}  // namespace sfmamba::tuning

#endif  // SFMAMBA_MODEL_TUNING_MODEL_SCANS_H_
