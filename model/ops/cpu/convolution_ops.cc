#include <algorithm>

#include "ATen/ops/constant_pad_nd.h"
#include "ATen/ops/empty.h"
#include "ATen/record_function.h"
#include "kernels/linear/depthwise_convolution.h"
#include "kernels/linear/gemm_convolution.h"
#include "kernels/linear/packed_gemm.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/kernel_types.h"
#include "model/ops/parallel.h"

namespace sfmamba::ops {
namespace {

// A part has at least this many pixels. With fewer pixels, the matrix product
// has too few rows to be efficient.
constexpr int64_t kGrainPixels = 24;
// The threads divide the pixels only if each gets at least this many. With
// fewer, each thread would read all weights for too little work.
constexpr int64_t kThreadPixels = 64;
// A part has at least this many multiplications, for dense and for depthwise
// convolutions. They take about 10 us.
constexpr int64_t kGrainProducts = 1 << 19;
constexpr int64_t kGrainDepthwise = 1 << 17;

// Divides the output channels among the threads if there are few pixels. If
// there are many, divides the pixels.
template <typename W>
void ConvolveInParallel(const kernels::GemmConvolutionArgs<W>& args,
                        int64_t depth) {
  const int64_t pixels = kernels::GemmConvolutionPixels(args);
  const int64_t width = kernels::PanelWidth<W>();
  const int64_t panels = (args.out + width - 1) / width;
  const int64_t threads = LoopThreads();
  // Each thread gets at least 4 panels of output channels. Then all threads
  // have nearly the same work.
  if (pixels < kThreadPixels * threads && panels >= 4 * threads) {
    ParallelFor(
        panels, std::max<int64_t>(1, kGrainProducts / (pixels * depth * width)),
        [&](int64_t begin, int64_t end) {
          kernels::GemmConvolutionCpu(
              kernels::SliceOutputs(args, begin * width,
                                    std::min<int64_t>(end * width, args.out)),
              0, pixels);
        });
  } else {
    ParallelFor(pixels,
                std::max(kGrainPixels, kGrainProducts / (depth * args.out)),
                [&](int64_t begin, int64_t end) {
                  kernels::GemmConvolutionCpu(args, begin, end);
                });
  }
}

// Convolves x [N, in, H, W] into y [N, H, W, out], contiguous.
void Convolve(const at::Tensor& x, const GemmConvWeights& convolution, bool add,
              const at::Tensor& y) {
  RECORD_FUNCTION("sfmamba::gemm_convolution",
                  c10::ArrayRef<const c10::IValue>{});
  const at::Tensor dense = x.permute({0, 2, 3, 1}).contiguous();
  DispatchWeights(convolution.weights, [&](auto type) {
    using W = decltype(type);
    kernels::GemmConvolutionArgs<W> args{};
    args.count = x.size(0);
    args.height = x.size(2);
    args.width = x.size(3);
    args.in = x.size(1);
    args.out = y.size(3);
    args.kernel = convolution.kernel;
    args.stride = convolution.stride;
    if (dense.scalar_type() == at::kBFloat16) {
      args.x_bf16 = Data<kernels::BFloat16>(dense);
    } else {
      args.x = dense.const_data_ptr<float>();
    }
    args.weights = Data<W>(convolution.weights.values);
    if (convolution.bias.defined()) {
      args.bias = convolution.bias.const_data_ptr<float>();
    }
    args.low = convolution.low;
    args.high = convolution.high;
    args.gelu = convolution.gelu;
    args.add = add;
    if (y.scalar_type() == at::kBFloat16) {
      args.y_bf16 = Data<kernels::BFloat16>(y);
    } else {
      args.y = y.data_ptr<float>();
    }
    args.y_stride = args.out;
    ConvolveInParallel(args, convolution.weights.in);
  });
}

// Returns an uninitialised output [N, out, H / stride, W / stride] for x [N,
// in, H, W], with sides rounded up. It is channels-last in memory.
at::Tensor EmptyOutput(const at::Tensor& x, int64_t out, int stride,
                       at::ScalarType type) {
  return at::empty({x.size(0), (x.size(2) + stride - 1) / stride,
                    (x.size(3) + stride - 1) / stride, out},
                   x.options().dtype(type))
      .permute({0, 3, 1, 2});
}

}  // namespace

GemmConvWeights PackGemmConv(const at::Tensor& weight, const at::Tensor& bias,
                             int stride, at::ScalarType type) {
  GemmConvWeights convolution;
  convolution.kernel = weight.size(2);
  convolution.stride = stride;
  const int64_t out = weight.size(0), in = weight.size(1);
  const kernels::ConvolutionRuns runs =
      type == at::kBFloat16
          ? kernels::RunsOf<kernels::BFloat16>(in, convolution.kernel)
          : kernels::RunsOf<float>(in, convolution.kernel);
  const at::Tensor rows = at::constant_pad_nd(
      weight.permute({0, 2, 3, 1}).reshape({out, runs.runs, runs.length}),
      {0, runs.packed_length - runs.length});
  convolution.weights = PackGemm(rows.reshape({out, runs.depth()}), type);
  convolution.bias = bias;
  return convolution;
}

at::Tensor GemmConv(const at::Tensor& x, const GemmConvWeights& convolution) {
  const at::Tensor y = EmptyOutput(x, convolution.weights.out,
                                   convolution.stride, convolution.result);
  Convolve(x, convolution, /*add=*/false, y.permute({0, 2, 3, 1}));
  return y;
}

void AddGemmConv(const at::Tensor& x, const GemmConvWeights& convolution,
                 at::Tensor& residual) {
  at::Tensor y = residual.permute({0, 2, 3, 1}).contiguous();
  Convolve(x, convolution, /*add=*/true, y);
  residual = y.permute({0, 3, 1, 2});
}

DepthwiseWeights PackDepthwise(const at::Tensor& weight, const at::Tensor& bias,
                               int stride) {
  DepthwiseWeights convolution;
  convolution.kernel = weight.size(2);
  convolution.stride = stride;
  convolution.values =
      weight.squeeze(1).permute({1, 2, 0}).to(at::kFloat).contiguous();
  convolution.bias = bias;
  return convolution;
}

at::Tensor DepthwiseConv(const at::Tensor& x,
                         const DepthwiseWeights& convolution) {
  RECORD_FUNCTION("sfmamba::depthwise_convolution",
                  c10::ArrayRef<const c10::IValue>{});
  const at::Tensor dense = x.permute({0, 2, 3, 1}).contiguous();
  const at::Tensor y =
      EmptyOutput(x, x.size(1), convolution.stride, at::kFloat);
  kernels::DepthwiseConvolutionArgs args{};
  args.count = x.size(0);
  args.height = x.size(2);
  args.width = x.size(3);
  args.channels = x.size(1);
  args.kernel = convolution.kernel;
  args.stride = convolution.stride;
  args.x = dense.const_data_ptr<float>();
  args.weight = convolution.values.const_data_ptr<float>();
  if (convolution.bias.defined()) {
    args.bias = convolution.bias.const_data_ptr<float>();
  }
  args.low = convolution.low;
  args.high = convolution.high;
  args.y = y.data_ptr<float>();
  const int64_t products =
      y.size(3) * args.channels * args.kernel * args.kernel;
  ParallelFor(kernels::DepthwiseConvolutionRows(args),
              std::max<int64_t>(1, kGrainDepthwise / products),
              [&](int64_t begin, int64_t end) {
                kernels::DepthwiseConvolutionCpu(args, begin, end);
              });
  return y;
}

}  // namespace sfmamba::ops
