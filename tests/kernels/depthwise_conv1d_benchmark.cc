#include "benchmark/benchmark.h"
#include "kernels/depthwise_conv1d.h"
#include "tests/kernels/benchmark_cases.h"
#include "tests/kernels/matrix.h"

namespace sfmamba {
namespace {

template <typename T>
void DepthwiseConv1dSilu(benchmark::State& state) {
  const int batch = state.range(1), length = state.range(2);
  const int channels = state.range(3);
  std::mt19937 random(1);
  Matrix<T> x(batch * length, channels, kDense);
  Matrix<T> y(batch * length, channels, kDense);
  x.FillNormal(random, 0, 1);
  const std::vector<float> weight = Normals(random, 3 * channels, 0, 1);
  DepthwiseConv1dArgs<T> args{};
  args.channels = channels;
  args.taps = 3;
  args.left = 1;
  args.x = x.data();
  args.x_stride = x.stride();
  args.y = y.data();
  args.y_stride = y.stride();
  args.weight = weight.data();
  args.silu = true;
  args.segments = {batch, length};
  for (auto _ : state) DepthwiseConv1dCpu(args, IsaOf(state));
  Report(state);
}
BENCHMARK_TEMPLATE(DepthwiseConv1dSilu, float)->Apply(StageCases<1>);
BENCHMARK_TEMPLATE(DepthwiseConv1dSilu, BFloat16)->Apply(StageCases<1>);

}  // namespace
}  // namespace sfmamba

BENCHMARK_MAIN();
