#include "model/ops/layer_norm_op.h"

namespace sfmamba::ops {

at::Tensor SwapEnds(const at::Tensor& x, int64_t length) {
  const at::Tensor sequences = x.view({-1, length, x.size(-1)});
  const at::Tensor swapped = sequences.clone();
  swapped.select(1, 0).copy_(sequences.select(1, length - 1));
  swapped.select(1, length - 1).copy_(sequences.select(1, 0));
  return swapped.view(x.sizes());
}

}  // namespace sfmamba::ops
