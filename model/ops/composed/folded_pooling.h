#ifndef SFMAMBA_MODEL_OPS_COMPOSED_FOLDED_POOLING_H_
#define SFMAMBA_MODEL_OPS_COMPOSED_FOLDED_POOLING_H_

#include <optional>

#include "model/ops/head_ops.h"

namespace sfmamba::ops {

// Computes the mean of the map's pixels first and then applies the BatchNorm,
// as a scale and a shift. The opposite order would give the same result, but
// takes longer.
class FoldedPooling : public PoolingOp {
 public:
  explicit FoldedPooling(const PoolingParameters& parameters);

  at::Tensor Forward(const at::Tensor& map) const override;

 private:
  std::optional<Affine> affine_;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_COMPOSED_FOLDED_POOLING_H_
