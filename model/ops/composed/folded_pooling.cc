#include "model/ops/composed/folded_pooling.h"

#include "ATen/ops/addcmul.h"

namespace sfmamba::ops {

FoldedPooling::FoldedPooling(const PoolingParameters& parameters) {
  if (parameters.norm.has_value()) affine_ = ToAffine(*parameters.norm);
}

at::Tensor FoldedPooling::Forward(const at::Tensor& map) const {
  // A BatchNorm after the mean gives the same result as before it. After the
  // mean, there is only one value per channel.
  const at::Tensor mean = map.to(at::kFloat).mean({2, 3});
  return affine_.has_value() ? at::addcmul(affine_->shift, mean, affine_->scale)
                             : mean;
}

}  // namespace sfmamba::ops
