#include "ATen/ops/empty.h"
#include "ATen/record_function.h"
#include "kernels/linear/winograd_conv3x3.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/parallel.h"
#include "model/weights/weight_memory.h"

namespace sfmamba::ops {
namespace {

// Each thread gets at least this many pixels. With fewer pixels, the matrix
// products have too few rows to be efficient.
constexpr int64_t kGrainPixels = 24 * 16;

// Convolves x [N, in, H, W] into y [N, H, W, out], contiguous.
void Convolve(const at::Tensor& x, const WinogradWeights& convolution,
              kernels::WinogradActivation activation, bool add,
              const at::Tensor& y) {
  RECORD_FUNCTION("sfmamba::winograd_conv", c10::ArrayRef<const c10::IValue>{});
  const at::Tensor dense = x.permute({0, 2, 3, 1}).contiguous();
  kernels::WinogradConv3x3Args args{};
  args.side = convolution.side;
  args.count = x.size(0);
  args.height = x.size(2);
  args.width = x.size(3);
  args.in = x.size(1);
  args.out = y.size(3);
  args.x = dense.const_data_ptr<float>();
  args.weights = convolution.values.const_data_ptr<float>();
  if (convolution.bias.defined()) {
    args.bias = convolution.bias.const_data_ptr<float>();
  }
  args.activation = activation;
  args.add = add;
  args.y = y.data_ptr<float>();
  ParallelFor(kernels::WinogradTiles(args),
              kGrainPixels / (convolution.side * convolution.side),
              [&](int64_t begin, int64_t end) {
                // The scratch memory is a tensor, so that its memory is cached
                // and the next loop can reuse it.
                const at::Tensor scratch =
                    at::empty(kernels::WinogradScratchSize(args, end - begin));
                kernels::WinogradConv3x3Cpu(args, begin, end,
                                            scratch.data_ptr<float>());
              });
}

}  // namespace

WinogradWeights PackWinograd(const at::Tensor& weight, const at::Tensor& bias,
                             int side) {
  const at::Tensor dense = weight.to(at::kFloat).contiguous();
  const int out = dense.size(0), in = dense.size(1);
  const at::Tensor packed =
      weights::EmptyWeights(kernels::WinogradWeightsSize(side, in, out));
  kernels::PackWinogradWeights(dense.const_data_ptr<float>(), side, in, out,
                               packed.data_ptr<float>());
  return {side, out, packed, bias};
}

at::Tensor WinogradConv(const at::Tensor& x, const WinogradWeights& convolution,
                        kernels::WinogradActivation activation) {
  const at::Tensor y = at::empty(
      {x.size(0), x.size(2), x.size(3), convolution.out}, x.options());
  Convolve(x, convolution, activation, /*add=*/false, y);
  return y.permute({0, 3, 1, 2});
}

void AddWinogradConv(const at::Tensor& x, const WinogradWeights& convolution,
                     at::Tensor& residual) {
  at::Tensor y = residual.permute({0, 2, 3, 1}).contiguous();
  Convolve(x, convolution, kernels::WinogradActivation::kNone, /*add=*/true, y);
  residual = y.permute({0, 3, 1, 2});
}

}  // namespace sfmamba::ops
