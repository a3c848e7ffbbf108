#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/linear/int8_convolution.h"
#include "kernels/linear/int8_gemm.h"
#include "tests/kernels/benchmark_cases.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

template <typename T>
using Aligned = std::vector<T, AlignedAllocator<T>>;

// Random weights [out, in], rounded to int8 and packed.
class Weights {
 public:
  Weights(std::mt19937& random, int in, int out)
      : values_(Int8PackedSize(in, out)),
        scales_(Int8PackedOutputs(out)),
        excess_(scales_.size()) {
    Matrix<float> weights(out, in, 0);
    weights.FillNormal(random, 0, 1);
    PackInt8Weights(weights.data(), in, out, packed());
  }

  Int8Weights packed() {
    return {values_.data(), scales_.data(), excess_.data()};
  }

 private:
  Aligned<int8_t> values_;
  std::vector<float> scales_;
  std::vector<int32_t> excess_;
};

// Reports the operations per second of one core. `products` is the number of
// multiplications in one run. A multiplication and the addition of its result
// count as two operations.
void ReportFlops(benchmark::State& state, double products) {
  state.counters["flops"] = benchmark::Counter(
      2 * products, benchmark::Counter::kIsIterationInvariantRate);
}

// Adds a benchmark case for each matrix product of SF-Mamba T's stages 3 and 4
// at 224 x 224 pixels. The products are in_proj or qkv, out_proj, fc1 and fc2.
void LinearCases(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"rows", "in", "out"});
  for (int stage : {3, 4}) {
    const int rows = stage == 3 ? 198 : 51, width = stage == 3 ? 320 : 640;
    for (const auto& [in, out] : {std::pair(width, 3 * width),
                                  {width, width},
                                  {width, 4 * width},
                                  {4 * width, width}}) {
      benchmark->Args({rows, in, out});
    }
  }
  LeastOfFive(benchmark);
}

// Times a matrix product, including the rounding of the rows of x to int8.
void Product(benchmark::State& state) {
  const int64_t rows = state.range(0);
  const int in = static_cast<int>(state.range(1));
  const int out = static_cast<int>(state.range(2));
  std::mt19937 random(1);
  Matrix<float> x(rows, in, 0), y(rows, out, 0);
  x.FillNormal(random, 0, 1);
  Weights weights(random, in, out);
  const std::vector<float> bias = Normals(random, out, 0, 1);
  Aligned<uint8_t> values(rows * QuantizedStride(in));
  std::vector<float> scales(rows);
  Int8GemmArgs args{};
  args.rows = rows;
  args.in = in;
  args.out = out;
  args.x = x.data();
  args.x_stride = x.stride();
  args.x_values = values.data();
  args.x_scales = scales.data();
  args.weights = weights.packed();
  args.bias = bias.data();
  args.y = y.data();
  args.y_stride = y.stride();
  for (auto _ : state) {
    QuantizeRowsCpu(
        {rows, in, x.data(), x.stride(), values.data(), scales.data()});
    Int8GemmCpu(args);
  }
  ReportFlops(state, double(rows) * in * out);
}
BENCHMARK(Product)->Apply(LinearCases);

// Adds a benchmark case for each size of the convolutions in SF-Mamba T's stem
// and in its stages 1 and 2.
void ConvolutionCases(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"side", "in", "out", "stride"});
  benchmark->Args({112, 32, 80, 2});
  benchmark->Args({56, 80, 80, 1});
  benchmark->Args({56, 80, 160, 2});
  benchmark->Args({28, 160, 160, 1});
  benchmark->Args({28, 160, 320, 2});
  LeastOfFive(benchmark);
}

// Times a convolution, including the rounding of its input map to int8.
void Convolution(benchmark::State& state) {
  const int side = static_cast<int>(state.range(0));
  const int in = static_cast<int>(state.range(1));
  const int out = static_cast<int>(state.range(2));
  const int stride = static_cast<int>(state.range(3));
  const int rows = side / stride;
  std::mt19937 random(1);
  Matrix<float> x(side * side, in, 0), y(rows * rows, out, 0);
  x.FillNormal(random, 0, 1);
  Weights weights(random, 9 * in, out);
  const std::vector<float> bias = Normals(random, out, 0, 1);
  Aligned<uint8_t> values((side + 2) * (side + 2) * in);
  float largest = 0;
  const QuantizeMapsArgs quantize{
      1, side, side, in, /*margin=*/1, x.data(), values.data(), &largest};
  const Int8ConvolutionArgs args{1,
                                 side,
                                 side,
                                 in,
                                 out,
                                 /*kernel=*/3,
                                 stride,
                                 values.data(),
                                 &largest,
                                 weights.packed(),
                                 bias.data(),
                                 Int8Activation::kGeluTanh,
                                 /*add=*/false,
                                 y.data(),
                                 y.stride()};
  for (auto _ : state) {
    largest = LargestMagnitudeCpu(x.data(), int64_t{side} * side * in);
    QuantizeMapRowsCpu(quantize, 0, side + 2);
    Int8ConvolutionCpu(args, 0, rows);
  }
  ReportFlops(state, 9.0 * rows * rows * in * out);
}
BENCHMARK(Convolution)->Apply(ConvolutionCases);

}  // namespace
}  // namespace sfmamba::kernels

BENCHMARK_MAIN();
