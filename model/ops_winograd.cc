#include "ATen/ops/empty.h"
#include "ATen/record_function.h"
#include "kernels/winograd_conv3x3.h"
#include "model/ops.h"
#include "model/parallel.h"

namespace sfmamba::ops {
namespace {

// Tiles that a thread should have to itself before another is woken for the
// rest: fewer make products of too few rows.
constexpr int64_t kGrainTiles = 24;

}  // namespace

at::Tensor PackWinograd(const at::Tensor& weight) {
  const at::Tensor dense = weight.to(at::kFloat).contiguous();
  const int out = dense.size(0), in = dense.size(1);
  const at::Tensor packed =
      at::empty({WinogradWeightsSize(in, out)}, dense.options());
  PackWinogradWeights(dense.const_data_ptr<float>(), in, out,
                      packed.data_ptr<float>());
  return packed;
}

at::Tensor WinogradConv(const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& bias, int64_t out, bool relu) {
  RECORD_FUNCTION("sfmamba::winograd_conv", c10::ArrayRef<const c10::IValue>{});
  const at::Tensor dense = x.permute({0, 2, 3, 1}).contiguous();
  const at::Tensor y =
      at::empty({x.size(0), x.size(2), x.size(3), out}, x.options());
  WinogradConv3x3Args args{};
  args.count = x.size(0);
  args.height = x.size(2);
  args.width = x.size(3);
  args.in = x.size(1);
  args.out = out;
  args.x = dense.const_data_ptr<float>();
  args.weights = weight.const_data_ptr<float>();
  if (bias.defined()) args.bias = bias.const_data_ptr<float>();
  args.relu = relu;
  args.y = y.data_ptr<float>();
  ParallelFor(WinogradTiles(args), kGrainTiles,
              [&](int64_t begin, int64_t end) {
                WinogradConv3x3Cpu(args, begin, end);
              });
  return y.permute({0, 3, 1, 2});
}

}  // namespace sfmamba::ops
