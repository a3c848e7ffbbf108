#ifndef SFMAMBA_MODEL_LAYER_OPTIONS_H_
#define SFMAMBA_MODEL_LAYER_OPTIONS_H_

#include "model/config.h"

namespace sfmamba {

// How every layer of a model computes.
struct LayerOptions {
  // Weights rewritten and packed at load, our kernels. False: libtorch's own
  // operators one by one, as the papers write them; fp32 only.
  bool fuse = true;
  // Of matrix products and convolutions; norms, the scan and the residual
  // stream stay fp32.
  Precision precision = Precision::kFloat32;
};

}  // namespace sfmamba

#endif  // SFMAMBA_MODEL_LAYER_OPTIONS_H_
