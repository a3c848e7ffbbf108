#ifndef SFMAMBA_MODEL_ENGINE_MODEL_SCANS_H_
#define SFMAMBA_MODEL_ENGINE_MODEL_SCANS_H_

#include <vector>

#include "model/config.h"
#include "model/tuning/scan_plan_table.h"

namespace sfmamba::engine {

// The scans of a model on inputs of its configured size, in batches of 1, 2, 4
// and so on up to `max_batch`: what a fold table should know of it. Of the
// ablations' scan modes only the plain scan's. None twice.
std::vector<tuning::ScanShape> ScanShapes(const model::ModelConfig& config,
                                          int max_batch);

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_MODEL_SCANS_H_
