#ifndef SFMAMBA_TESTS_MODEL_BACKBONES_SMALL_BACKBONE_H_
#define SFMAMBA_TESTS_MODEL_BACKBONES_SMALL_BACKBONE_H_

#include "model/config.h"

namespace sfmamba::backbones {

// Returns a hybrid backbone that has every feature of the variants. Its widths
// are 10, 20, 40 and 80, and its scans have 20 and 40 channels. Most of these
// numbers are not multiples of a SIMD vector's length, which is 8 or 16.
inline model::BackboneConfig SmallBackbone() {
  model::BackboneConfig config;
  config.dim = 10;
  config.in_dim = 5;
  config.depths = {1, 1, 3, 2};
  config.num_heads = {1, 1, 4, 4};
  config.windows = {4, 3};
  return config;
}

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_TESTS_MODEL_BACKBONES_SMALL_BACKBONE_H_
