#include "ATen/ops/cat.h"
#include "model/ops/layer_norm_op.h"

namespace sfmamba::ops {

at::Tensor SwapEnds(const at::Tensor& x, int64_t length) {
  const at::Tensor sequences = x.view({-1, length, x.size(-1)});
  const at::Tensor head = sequences.narrow(1, 0, 1);
  const at::Tensor tail = sequences.narrow(1, length - 1, 1);
  const at::Tensor middle = sequences.narrow(1, 1, length - 2);
  return at::cat({tail, middle, head}, 1).view(x.sizes());
}

}  // namespace sfmamba::ops
