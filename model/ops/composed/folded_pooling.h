#ifndef SFMAMBA_MODEL_OPS_COMPOSED_FOLDED_POOLING_H_
#define SFMAMBA_MODEL_OPS_COMPOSED_FOLDED_POOLING_H_

#include <optional>

#include "model/ops/head_ops.h"

namespace sfmamba::ops {

// Pools the map first and then applies the BatchNorm as a scale and a shift.
// This order gives the same result, because pooling and BatchNorm commute.
class FoldedPooling : public PoolingOp {
 public:
  explicit FoldedPooling(const PoolingParameters& parameters);

  at::Tensor Forward(const at::Tensor& map) const override;

 private:
  std::optional<Affine> affine_;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_COMPOSED_FOLDED_POOLING_H_
