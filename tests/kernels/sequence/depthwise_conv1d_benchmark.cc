#include "benchmark/benchmark.h"
#include "kernels/sequence/depthwise_conv1d.h"
#include "tests/kernels/benchmark_cases.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

template <typename T>
void DepthwiseConv1dSilu(benchmark::State& state) {
  StageTokens<T> tokens(state);
  std::mt19937 random(1);
  const std::vector<float> weight = Normals(random, 3 * tokens.channels, 0, 1);
  DepthwiseConv1dArgs<T> args{};
  args.channels = tokens.channels;
  args.taps = 3;
  args.left = 1;
  args.x = tokens.x.data();
  args.x_stride = tokens.x.stride();
  args.y = tokens.y.data();
  args.y_stride = tokens.y.stride();
  args.weight = weight.data();
  args.silu = true;
  args.sequences = tokens.sequences;
  TimePerValue(state, [&](CpuIsa isa) { DepthwiseConv1dCpu(args, isa); });
}
BENCHMARK_TEMPLATE(DepthwiseConv1dSilu, float)->Apply(StageCases<1>);
BENCHMARK_TEMPLATE(DepthwiseConv1dSilu, BFloat16)->Apply(StageCases<1>);

}  // namespace
}  // namespace sfmamba::kernels

BENCHMARK_MAIN();
