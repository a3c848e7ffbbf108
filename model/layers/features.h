#ifndef SFMAMBA_MODEL_LAYERS_FEATURES_H_
#define SFMAMBA_MODEL_LAYERS_FEATURES_H_

#include <vector>

#include "ATen/core/Tensor.h"

namespace sfmamba::layers {

// The result of a backbone: maps [N, C, H, W], from fine to coarse. The hybrid
// architecture has four maps, at strides 4, 8, 16 and 32, in fp32 or in the
// compute type. Vim has only one map. It has a single pixel, which is the class
// token.
using Features = std::vector<at::Tensor>;

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_FEATURES_H_
