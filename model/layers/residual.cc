#include "model/layers/residual.h"

#include "model/ops/ops.h"

namespace sfmamba::layers {

at::Tensor& Residual::Sum() {
  if (waiting_.defined()) {
    x_.add_(waiting_.view(x_.sizes()));
    waiting_ = at::Tensor();
  }
  return x_;
}

void Residual::Add(const at::Tensor& y) {
  Sum();
  waiting_ = y;
  if (!ops::OnDevice(x_)) Sum();
}

at::Tensor Residual::Normalized(const at::Tensor& gamma, const at::Tensor& beta,
                                int64_t length, bool swap,
                                at::ScalarType type) {
  const at::Tensor y =
      ops::LayerNorm(x_, gamma, beta, length, swap, type, waiting_);
  waiting_ = at::Tensor();
  return y;
}

}  // namespace sfmamba::layers
