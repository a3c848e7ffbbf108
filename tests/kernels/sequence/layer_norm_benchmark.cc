#include "benchmark/benchmark.h"
#include "kernels/sequence/layer_norm.h"
#include "tests/kernels/benchmark_cases.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

template <typename T>
void LayerNorm(benchmark::State& state) {
  StageTokens<T> tokens(state);
  std::mt19937 random(1);
  const std::vector<float> gamma = Normals(random, tokens.channels, 1, 0.1f);
  LayerNormArgs<T> args{};
  args.channels = tokens.channels;
  args.x = tokens.x.data();
  args.x_stride = tokens.x.stride();
  args.y = tokens.y.data();
  args.y_stride = tokens.y.stride();
  args.gamma = args.beta = gamma.data();
  args.eps = 1e-5f;
  args.swap = true;
  args.sequences = tokens.sequences;
  TimePerValue(state, [&](CpuIsa isa) { LayerNormCpu(args, isa); });
}
BENCHMARK_TEMPLATE(LayerNorm, float)->Apply(StageCases<2>);
BENCHMARK_TEMPLATE(LayerNorm, BFloat16)->Apply(StageCases<2>);

}  // namespace
}  // namespace sfmamba::kernels

BENCHMARK_MAIN();
