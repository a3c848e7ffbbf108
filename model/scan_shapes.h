#ifndef SFMAMBA_MODEL_SCAN_SHAPES_H_
#define SFMAMBA_MODEL_SCAN_SHAPES_H_

#include <vector>

#include "kernels/fold_plan.h"
#include "model/config.h"

namespace sfmamba {

// The scans of a model on inputs of its configured size, in batches of 1, 2, 4
// and so on up to `max_batch`: what a fold table should know of it. Of the
// ablations' scan modes only the plain scan's. None twice.
std::vector<ScanShape> ScanShapes(const ModelConfig& config, int max_batch);

}  // namespace sfmamba

#endif  // SFMAMBA_MODEL_SCAN_SHAPES_H_
