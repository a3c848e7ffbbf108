#ifndef SFMAMBA_MODEL_OPS_GATED_OPS_H_
#define SFMAMBA_MODEL_OPS_GATED_OPS_H_

#include "ATen/core/Tensor.h"
#include "model/config.h"
#include "model/ops/weight_transforms.h"

namespace sfmamba::ops {

struct GatedConvolutionParameters {
  Weights weights;  // [conv, 1, 7, 7] and [conv].
  model::Nonlinearity gate = model::Nonlinearity::kGelu;
};

// The middle of a gated block, which is its convolution and its gate. See
// kernels/linear/gated_convolution.h. Immutable, so thread-safe.
class GatedConvolutionOp {
 public:
  virtual ~GatedConvolutionOp() = default;

  // Maps x [N, H, W, 2 * hidden] to [N, H, W, hidden]. x is contiguous and the
  // result of a linear operator. The result may be read by linear operators.
  virtual at::Tensor Forward(const at::Tensor& x) const = 0;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_GATED_OPS_H_
