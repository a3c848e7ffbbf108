#include <algorithm>

#include "ATen/ops/empty.h"
#include "ATen/record_function.h"
#include "kernels/linear/int8_convolution.h"
#include "kernels/linear/int8_gemm.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/kernel_types.h"
#include "model/ops/parallel.h"
#include "model/weights/weight_memory.h"

namespace sfmamba::ops {
namespace {

// Each thread gets at least this many multiplications, which take about 10 us.
constexpr int64_t kGrainProducts = 1 << 21;
// Each thread rounds at least this many values.
constexpr int64_t kGrainValues = 1 << 16;
// Reading a weight takes as long as this many multiplications.
constexpr int64_t kReadProducts = 8;
// The threads divide the rows only if each gets at least this many.
constexpr int64_t kDividedRows = 64;

int64_t Grain(int64_t products) {
  return std::max<int64_t>(1, kGrainProducts / std::max<int64_t>(1, products));
}

kernels::Int8Weights Int8WeightsOf(const Int8PackedWeights& weights) {
  return {weights.values.data_ptr<int8_t>(), weights.scales.data_ptr<float>(),
          weights.excess.data_ptr<int32_t>()};
}

// If there are many rows or few outputs, the threads divide the rows. Each then
// rounds and multiplies its rows. In other cases, the threads first divide the
// rows to round them. Then they divide the panels of outputs to multiply.
void MultiplyInParallel(const kernels::Int8GemmArgs& args,
                        const kernels::QuantizeArgs& quantize) {
  const auto quantize_rows = [&](int64_t begin, int64_t end) {
    kernels::QuantizeRowsCpu(kernels::SliceRows(quantize, begin, end));
  };
  const int64_t width = kernels::Int8PanelWidth();
  const int64_t panels = (args.out + width - 1) / width;
  const int64_t threads = LoopThreads();
  const bool has_many_rows =
      args.rows >= kDividedRows * threads && !LoopsHaveManyParts();
  if (!has_many_rows && panels >= 4 * threads) {
    ParallelFor(args.rows, std::max<int64_t>(1, kGrainValues / args.in),
                quantize_rows);
    ParallelFor(panels, Grain((args.rows + kReadProducts) * args.in * width),
                [&](int64_t begin, int64_t end) {
                  kernels::Int8GemmCpu(kernels::SliceOutputs(
                      args, begin * width, std::min(end * width, args.out)));
                });
  } else {
    ParallelFor(args.rows, Grain(args.in * args.out),
                [&](int64_t begin, int64_t end) {
                  quantize_rows(begin, end);
                  kernels::Int8GemmCpu(kernels::SliceRows(args, begin, end));
                });
  }
}

// Returns the largest magnitude of each map of x [N, H, W, C], contiguous.
at::Tensor LargestMagnitudes(const at::Tensor& x) {
  const int64_t count = x.size(0), height = x.size(1);
  const int64_t row = x.size(2) * x.size(3);
  const at::Tensor of_rows = at::empty({count, height}, at::kFloat);
  const at::Tensor of_maps = at::empty({count}, at::kFloat);
  const float* const values = x.const_data_ptr<float>();
  float* const rows = of_rows.data_ptr<float>();
  ParallelFor(count * height, std::max<int64_t>(1, kGrainValues / row),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  rows[i] = kernels::LargestMagnitudeCpu(values + i * row, row);
                }
              });
  for (int64_t i = 0; i < count; ++i) {
    of_maps.data_ptr<float>()[i] =
        kernels::LargestMagnitudeCpu(rows + i * height, height);
  }
  return of_maps;
}

// Returns x [N, H, W, C], contiguous, rounded by kernels::QuantizeMapRowsCpu().
at::Tensor QuantizeMaps(const at::Tensor& x, const at::Tensor& largest,
                        int margin) {
  kernels::QuantizeMapsArgs args{};
  args.count = x.size(0);
  args.height = x.size(1);
  args.width = x.size(2);
  args.channels = x.size(3);
  args.margin = margin;
  args.x = x.const_data_ptr<float>();
  args.largest = largest.const_data_ptr<float>();
  const at::Tensor values = at::empty(
      {x.size(0), x.size(1) + 2 * margin, x.size(2) + 2 * margin, x.size(3)},
      at::kByte);
  args.values = values.data_ptr<uint8_t>();
  ParallelFor(values.size(0) * values.size(1),
              std::max<int64_t>(1, kGrainValues / (x.size(2) * x.size(3))),
              [&](int64_t begin, int64_t end) {
                kernels::QuantizeMapRowsCpu(args, begin, end);
              });
  return values;
}

// Convolves x [N, in, H, W] into y [N, H, W, out], contiguous.
void Convolve(const at::Tensor& x, const Int8ConvWeights& convolution, bool add,
              const at::Tensor& y) {
  RECORD_FUNCTION("sfmamba::int8_convolution",
                  c10::ArrayRef<const c10::IValue>{});
  const at::Tensor dense = x.permute({0, 2, 3, 1}).contiguous();
  const at::Tensor largest = LargestMagnitudes(dense);
  const at::Tensor values =
      QuantizeMaps(dense, largest, convolution.kernel / 2);
  kernels::Int8ConvolutionArgs args{};
  args.count = x.size(0);
  args.height = x.size(2);
  args.width = x.size(3);
  args.in = x.size(1);
  args.out = y.size(3);
  args.kernel = convolution.kernel;
  args.stride = convolution.stride;
  args.x = values.const_data_ptr<uint8_t>();
  args.largest = largest.const_data_ptr<float>();
  args.weights = Int8WeightsOf(convolution.weights);
  args.bias = Floats(convolution.bias);
  args.activation = convolution.activation;
  args.add = add;
  args.y = y.data_ptr<float>();
  args.y_stride = args.out;
  ParallelFor(y.size(0) * y.size(1),
              Grain(y.size(2) * convolution.weights.in * args.out),
              [&](int64_t begin, int64_t end) {
                kernels::Int8ConvolutionCpu(args, begin, end);
              });
}

}  // namespace

Int8PackedWeights PackInt8Gemm(const at::Tensor& weight) {
  const at::Tensor dense = weight.to(at::kFloat).contiguous();
  Int8PackedWeights packed;
  packed.in = dense.size(1);
  packed.out = dense.size(0);
  packed.values = weights::EmptyWeights(
      kernels::Int8PackedSize(packed.in, packed.out), at::kChar);
  const int64_t outputs = kernels::Int8PackedOutputs(packed.out);
  packed.scales = at::empty({outputs}, at::kFloat);
  packed.excess = at::empty({outputs}, at::kInt);
  kernels::PackInt8Weights(dense.const_data_ptr<float>(), packed.in, packed.out,
                           Int8WeightsOf(packed));
  return packed;
}

void Gemm(const at::Tensor& x, const Int8PackedWeights& weights,
          const at::Tensor& bias, GemmOutput output, at::Tensor y) {
  RECORD_FUNCTION("sfmamba::product", c10::ArrayRef<const c10::IValue>{});
  TORCH_CHECK(x.size(1) == weights.in && y.size(1) == weights.out &&
                  x.size(0) == y.size(0) && y.stride(1) == 1,
              "expected [rows, ", weights.in, "] to [rows, ", weights.out,
              "], got ", x.sizes(), " to ", y.sizes());
  const at::Tensor dense = x.stride(1) == 1 ? x : x.contiguous();
  const int64_t rows = x.size(0);
  const at::Tensor values =
      at::empty({rows, kernels::QuantizedStride(weights.in)}, at::kByte);
  const at::Tensor scales = at::empty({rows}, at::kFloat);
  kernels::QuantizeArgs quantize{};
  quantize.rows = rows;
  quantize.in = weights.in;
  quantize.x = dense.const_data_ptr<float>();
  quantize.x_stride = dense.stride(0);
  quantize.values = values.data_ptr<uint8_t>();
  quantize.scales = scales.data_ptr<float>();
  kernels::Int8GemmArgs args{};
  args.rows = rows;
  args.in = weights.in;
  args.out = weights.out;
  args.x = quantize.x;
  args.x_stride = quantize.x_stride;
  args.x_values = quantize.values;
  args.x_scales = quantize.scales;
  args.weights = Int8WeightsOf(weights);
  args.bias = Floats(bias);
  args.add = output == GemmOutput::kAdd;
  args.y = y.data_ptr<float>();
  args.y_stride = y.stride(0);
  args.gelu = output == GemmOutput::kGeluErf;
  MultiplyInParallel(args, quantize);
}

Int8ConvWeights PackInt8Conv(const at::Tensor& weight, const at::Tensor& bias,
                             int stride) {
  Int8ConvWeights convolution;
  convolution.kernel = weight.size(2);
  convolution.stride = stride;
  convolution.weights =
      PackInt8Gemm(weight.permute({0, 2, 3, 1}).reshape({weight.size(0), -1}));
  convolution.bias = bias;
  return convolution;
}

at::Tensor Int8Conv(const at::Tensor& x, const Int8ConvWeights& convolution) {
  const int64_t stride = convolution.stride;
  const at::Tensor y =
      at::empty({x.size(0), (x.size(2) + stride - 1) / stride,
                 (x.size(3) + stride - 1) / stride, convolution.weights.out},
                at::kFloat);
  Convolve(x, convolution, /*add=*/false, y);
  return y.permute({0, 3, 1, 2});
}

void AddInt8Conv(const at::Tensor& x, const Int8ConvWeights& convolution,
                 at::Tensor& residual) {
  at::Tensor y = residual.permute({0, 2, 3, 1}).contiguous();
  Convolve(x, convolution, /*add=*/true, y);
  residual = y.permute({0, 3, 1, 2});
}

}  // namespace sfmamba::ops
