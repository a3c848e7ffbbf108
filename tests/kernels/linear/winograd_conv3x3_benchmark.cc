#include <random>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/linear/winograd_conv3x3.h"
#include "tests/kernels/benchmark_cases.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

constexpr int kChannels = 256;

// Adds benchmark cases with sizes of a detector: the regions of its box head,
// the regions of its mask head, and two levels of its feature pyramid.
void DetectorCases(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"isa", "side", "maps", "height", "width"})
      ->Unit(benchmark::kMillisecond);
  for (CpuIsa isa : SupportedCpuIsas()) {
    if (isa == CpuIsa::kScalar) continue;  // Too slow at these sizes.
    const int number = static_cast<int>(isa);
    for (int side : {4, 7}) {
      benchmark->Args({number, side, 50, 7, 7})
          ->Args({number, side, 10, 14, 14})
          ->Args({number, side, 1, 25, 42})
          ->Args({number, side, 1, 100, 168});
    }
  }
  LeastOfFive(benchmark);
}

// Times a convolution. Reports the operations that the plain sum would need,
// per second of one core. A multiplication and the addition of its result count
// as two operations. In these cases, Winograd's method executes only 18 % to
// 33 % of these operations, and transforms of the tiles in addition.
void WinogradConv3x3(benchmark::State& state) {
  const int side = state.range(1), maps = state.range(2),
            height = state.range(3), width = state.range(4);
  const CpuIsa isa = static_cast<CpuIsa>(state.range(0));
  std::mt19937 random(1);
  Matrix<float> x(int64_t{maps} * height * width, kChannels, kDense);
  Matrix<float> y(x.rows(), kChannels, kDense);
  x.FillNormal(random, 0, 1);
  const std::vector<float> weights =
      Normals(random, kChannels * kChannels * 9, 0, 1);
  const std::vector<float> bias = Normals(random, kChannels, 0, 1);
  std::vector<float, AlignedAllocator<float>> packed(
      WinogradWeightsSize(side, kChannels, kChannels, isa));
  PackWinogradWeights(weights.data(), side, kChannels, kChannels, packed.data(),
                      isa);
  const WinogradConv3x3Args args{side,          maps,
                                 height,        width,
                                 kChannels,     kChannels,
                                 x.data(),      packed.data(),
                                 bias.data(),   WinogradActivation::kRelu,
                                 /*add=*/false, y.data()};
  std::vector<float, AlignedAllocator<float>> scratch(
      WinogradScratchSize(args, WinogradTiles(args)));
  Time(state, [&](CpuIsa isa) {
    WinogradConv3x3Cpu(args, 0, WinogradTiles(args), scratch.data(), isa);
  });
  state.counters["plain_flops"] =
      benchmark::Counter(2.0 * x.rows() * kChannels * kChannels * 9,
                         benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(WinogradConv3x3)->Apply(DetectorCases);

}  // namespace
}  // namespace sfmamba::kernels

BENCHMARK_MAIN();
