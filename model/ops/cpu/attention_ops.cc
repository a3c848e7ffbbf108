#include <algorithm>

#include "ATen/ops/empty.h"
#include "ATen/ops/scaled_dot_product_attention.h"
#include "c10/core/InferenceMode.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/parallel.h"

namespace sfmamba::ops {
namespace {

// The fewest multiplications per part, which outweigh the cost of calling
// libtorch.
constexpr int64_t kGrainProducts = 1 << 21;

}  // namespace

at::Tensor Attention(const at::Tensor& q, const at::Tensor& k,
                     const at::Tensor& v) {
  const int64_t sequences = q.size(0), heads = q.size(1);
  // The heads of a token lie side by side, as the next layer reads them.
  const at::Tensor y =
      at::empty({sequences, q.size(2), heads, v.size(3)}, q.options())
          .transpose(1, 2);
  const int axis = sequences >= heads ? 0 : 1;
  const int64_t products =
      q.size(2) * k.size(2) * (k.size(3) + v.size(3)) * q.size(1 - axis);
  ParallelFor(q.size(axis), std::max<int64_t>(1, kGrainProducts / products),
              [&](int64_t begin, int64_t end) {
                const c10::InferenceMode guard;  // Set for each thread.
                const auto part = [&](const at::Tensor& x) {
                  return x.narrow(axis, begin, end - begin);
                };
                part(y).copy_(at::scaled_dot_product_attention(part(q), part(k),
                                                               part(v)));
              });
  return y;
}

}  // namespace sfmamba::ops
