#include "model/ops/plain_ops.h"

#include <algorithm>
#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/ops/arange.h"
#include "ATen/ops/constant_pad_nd.h"
#include "ATen/ops/softplus.h"
#include "ATen/ops/stack.h"
#include "ATen/ops/where.h"
#include "ATen/ops/zeros_like.h"

namespace sfmamba::plain {
namespace {

// Returns x shifted forward by `offset` tokens (backward if negative), with
// zeros for values from beyond the sequence.
at::Tensor Shifted(const at::Tensor& x, int offset, int64_t length) {
  const int64_t by = std::clamp<int64_t>(offset, -x.size(1), x.size(1));
  const at::Tensor moved = at::constant_pad_nd(x, {0, 0, by, -by}, 0);
  const at::Tensor origin =
      at::arange(x.size(1), at::kLong).remainder(length).view({1, -1, 1}) -
      offset;
  return at::where((origin >= 0).logical_and(origin < length), moved,
                   at::Scalar(0.0));
}

}  // namespace

at::Tensor DepthwiseConv(const at::Tensor& x, const at::Tensor& weight,
                         const at::Tensor& bias, int left, int64_t length) {
  at::Tensor y = bias.defined() ? bias.expand(x.sizes()) : at::zeros_like(x);
  for (int tap = 0; tap < weight.size(0); ++tap) {
    y = y + Shifted(x, left - tap, length) * weight[tap];
  }
  return y;
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
