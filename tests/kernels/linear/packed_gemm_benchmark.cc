#include <random>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/linear/packed_gemm.h"
#include "tests/kernels/benchmark_cases.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

// Adds a benchmark case for each matrix product of SF-Mamba T's stages 3 and 4
// at 224 x 224 pixels. The products are in_proj or qkv, out_proj, fc1 and fc2.
void LinearCases(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"isa", "rows", "in", "out"});
  for (int stage : {3, 4}) {
    const int rows = stage == 3 ? 198 : 51, width = stage == 3 ? 320 : 640;
    for (const auto& [in, out] : {std::pair(width, 3 * width),
                                  {width, width},
                                  {width, 4 * width},
                                  {4 * width, width}}) {
      for (CpuIsa isa : SupportedCpuIsas()) {
        benchmark->Args({static_cast<int>(isa), rows, in, out});
      }
    }
  }
  LeastOfFive(benchmark);
}

// Times a matrix product and reports the operations per second of one core. A
// multiplication and the addition of its result count as two operations.
template <typename W>
void PackedGemm(benchmark::State& state) {
  const int64_t rows = state.range(1), in = state.range(2),
                out = state.range(3);
  const CpuIsa isa = static_cast<CpuIsa>(state.range(0));
  std::mt19937 random(1);
  Matrix<float> x(rows, in, kDense), weights(out, in, kDense);
  Matrix<float> y(rows, out, kDense);
  x.FillNormal(random, 0, 1);
  weights.FillNormal(random, 0, 1);
  const std::vector<float> bias = Normals(random, out, 0, 1);
  std::vector<W, AlignedAllocator<W>> packed(
      PackedWeightsSize<W>(in, out, isa));
  PackWeights(weights.data(), in, out, packed.data(), isa);
  GemmArgs<W> args{};
  args.rows = rows;
  args.in = in;
  args.out = out;
  args.x = x.data();
  args.x_stride = x.stride();
  args.weights = packed.data();
  args.bias = bias.data();
  args.y = y.data();
  args.y_stride = y.stride();
  Time(state, [&](CpuIsa isa) { PackedGemmCpu(args, isa); });
  state.counters["flops"] = benchmark::Counter(
      2.0 * rows * in * out, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_TEMPLATE(PackedGemm, float)->Apply(LinearCases);
BENCHMARK_TEMPLATE(PackedGemm, BFloat16)->Apply(LinearCases);

}  // namespace
}  // namespace sfmamba::kernels

BENCHMARK_MAIN();
