#include <algorithm>
#include <cmath>

#include "ATen/ops/empty.h"
#include "ATen/ops/scaled_dot_product_attention.h"
#include "ATen/record_function.h"
#include "c10/core/InferenceMode.h"
#include "kernels/sequence/attention.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/kernel_types.h"
#include "model/ops/parallel.h"

namespace sfmamba::ops {
namespace {

// A part of the loop has at least this many multiplications, which take about
// 10 us.
constexpr int64_t kGrainProducts = 1 << 19;
// The minimum for parts with a larger overhead. These are parts that call
// libtorch, or all parts while other processes use the CPUs.
constexpr int64_t kLongGrainProducts = 1 << 21;
// The largest number of a head's queries that one call of our kernel computes.
// Several threads can thus share a head with many queries. A smaller number
// would be slower, because each call packs all keys and values of its head.
constexpr int64_t kPartQueries = 1024;

// Returns an uninitialised result. In memory, the heads of a token lie side by
// side, as the next layer needs them.
at::Tensor EmptyResult(const at::Tensor& q, const at::Tensor& v) {
  return at::empty({q.size(0), q.size(2), q.size(1), v.size(3)}, q.options())
      .transpose(1, 2);
}

void AttendByLibtorch(const at::Tensor& q, const at::Tensor& k,
                      const at::Tensor& v, const at::Tensor& y) {
  // The threads divide the sequences or the heads, whichever number is larger.
  const int axis = q.size(0) >= q.size(1) ? 0 : 1;
  const int64_t products =
      q.size(2) * k.size(2) * (k.size(3) + v.size(3)) * q.size(1 - axis);
  ParallelFor(q.size(axis), std::max<int64_t>(1, kLongGrainProducts / products),
              [&](int64_t begin, int64_t end) {
                // Inference mode is a property of a thread, so each thread sets
                // it.
                const c10::InferenceMode guard;
                const auto part = [&](const at::Tensor& x) {
                  return x.narrow(axis, begin, end - begin);
                };
                part(y).copy_(at::scaled_dot_product_attention(part(q), part(k),
                                                               part(v)));
              });
}

// Computes attention by our kernel, which multiplies in type W.
template <typename W>
void Attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
            const at::Tensor& y) {
  const int64_t heads = q.size(1), queries = q.size(2);
  const int64_t parts = (queries + kPartQueries - 1) / kPartQueries;
  // The multiplications of one part: for q k^T and for the weighted sum of v.
  const int64_t products = queries * k.size(2) * 2 * q.size(3) / parts;
  const int64_t grain =
      LoopsHaveManyParts() ? kLongGrainProducts : kGrainProducts;
  ParallelFor(q.size(0) * heads * parts,
              std::max<int64_t>(1, grain / std::max<int64_t>(1, products)),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t sequence = i / parts / heads,
                                head = i / parts % heads;
                  const int64_t first = queries * (i % parts) / parts;
                  const auto at = [&](const at::Tensor& x, int64_t row) {
                    return Data<W>(x) + sequence * x.stride(0) +
                           head * x.stride(1) + row * x.stride(2);
                  };
                  kernels::AttentionArgs<W> args{};
                  args.queries = queries * (i % parts + 1) / parts - first;
                  args.tokens = k.size(2);
                  args.d = q.size(3);
                  args.q = at(q, first);
                  args.k = at(k, 0);
                  args.v = at(v, 0);
                  args.y = at(y, first);
                  args.q_stride = q.stride(2);
                  args.k_stride = k.stride(2);
                  args.v_stride = v.stride(2);
                  args.y_stride = y.stride(2);
                  kernels::AttentionCpu(args);
                }
              });
}

}  // namespace

at::Tensor Attention(const at::Tensor& q, const at::Tensor& k,
                     const at::Tensor& v) {
  RECORD_FUNCTION("sfmamba::attention", c10::ArrayRef<const c10::IValue>{});
  TORCH_CHECK(k.size(3) == v.size(3) && q.size(3) == k.size(3) &&
                  q.stride(3) == 1 && k.stride(3) == 1 && v.stride(3) == 1,
              "expected heads of one size, contiguous; got ", q.sizes(), ", ",
              k.sizes(), " and ", v.sizes());
  const at::Tensor y = EmptyResult(q, v);
  Dispatch(q, [&](auto type) { Attend<decltype(type)>(q, k, v, y); });
  return y;
}

at::Tensor AttentionByLibtorch(const at::Tensor& q, const at::Tensor& k,
                               const at::Tensor& v) {
  const at::Tensor y = EmptyResult(q, v);
  AttendByLibtorch(q, k, v, y);
  return y;
}

}  // namespace sfmamba::ops
