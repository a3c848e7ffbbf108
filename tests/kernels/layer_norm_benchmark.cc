#include "benchmark/benchmark.h"
#include "kernels/layer_norm.h"
#include "tests/kernels/benchmark_cases.h"
#include "tests/kernels/matrix.h"

namespace sfmamba {
namespace {

template <typename T>
void LayerNorm(benchmark::State& state) {
  const int batch = state.range(1), length = state.range(2);
  const int channels = state.range(3);
  std::mt19937 random(1);
  Matrix<T> x(batch * length, channels, kDense);
  Matrix<T> y(batch * length, channels, kDense);
  x.FillNormal(random, 0, 1);
  const std::vector<float> gamma = Normals(random, channels, 1, 0.1f);
  LayerNormArgs<T> args{};
  args.channels = channels;
  args.x = x.data();
  args.x_stride = x.stride();
  args.y = y.data();
  args.y_stride = y.stride();
  args.gamma = args.beta = gamma.data();
  args.eps = 1e-5f;
  args.swap = true;
  args.segments = {batch, length};
  for (auto _ : state) LayerNormCpu(args, IsaOf(state));
  Report(state);
}
BENCHMARK_TEMPLATE(LayerNorm, float)->Apply(StageCases<2>);
BENCHMARK_TEMPLATE(LayerNorm, BFloat16)->Apply(StageCases<2>);

}  // namespace
}  // namespace sfmamba

BENCHMARK_MAIN();
