#include "model/plain_ops.h"

#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/ops/arange.h"
#include "ATen/ops/constant_pad_nd.h"
#include "ATen/ops/softplus.h"
#include "ATen/ops/stack.h"
#include "ATen/ops/where.h"

namespace sfmamba::plain {
namespace {

// `x` moved by `offset` (1 or -1) tokens; zeros at the ends of sequences.
at::Tensor Shifted(const at::Tensor& x, int offset, int64_t length) {
  const at::Tensor moved = at::constant_pad_nd(x, {0, 0, offset, -offset}, 0);
  const at::Tensor place =
      at::arange(x.size(1), at::kLong).remainder(length).view({1, -1, 1});
  const int64_t end = offset > 0 ? 0 : length - 1;
  return at::where(place == end, at::Scalar(0.0), moved);
}

}  // namespace

at::Tensor DepthwiseConv(const at::Tensor& x, const at::Tensor& weight,
                         int64_t length) {
  return Shifted(x, 1, length) * weight[0] + x * weight[1] +
         Shifted(x, -1, length) * weight[2];
}

at::Tensor SelectiveScan(const ops::Scan& scan, const at::Tensor& u,
                         const at::Tensor& dt, const at::Tensor& B,
                         const at::Tensor& C, int64_t length) {
  const at::Tensor delta = at::softplus(dt + scan.bias).unsqueeze(2);
  const at::Tensor input = delta * u.unsqueeze(2);  // [rows, tokens, 1, D]
  std::vector<at::Tensor> ys;
  at::Tensor h;  // [rows, states, D]
  for (int64_t t = 0; t < u.size(1); ++t) {
    const at::Tensor added = input.select(1, t) * B.select(1, t).unsqueeze(2);
    h = t % length == 0 ? added
                        : (delta.select(1, t) * scan.A).exp() * h + added;
    ys.push_back((h * C.select(1, t).unsqueeze(2)).sum(1) +
                 scan.D * u.select(1, t));
  }
  return at::stack(ys, 1);
}

}  // namespace sfmamba::plain
