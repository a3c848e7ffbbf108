#include "model/ops/residual.h"

namespace sfmamba::ops {

at::Tensor& Residual::Sum() {
  if (waiting_.defined()) {
    x_.add_(waiting_.view(x_.sizes()));
    waiting_ = at::Tensor();
  }
  return x_;
}

void Residual::Add(const at::Tensor& y) {
  AddLater(y);
  Sum();
}

void Residual::AddLater(const at::Tensor& y) {
  Sum();
  waiting_ = y;
}

std::pair<at::Tensor, at::Tensor> Residual::TakeParts() {
  return {x_, std::exchange(waiting_, at::Tensor())};
}

}  // namespace sfmamba::ops
