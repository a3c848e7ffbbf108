#include "benchmark/benchmark.h"
#include "kernels/gelu.h"
#include "tests/kernels/benchmark_cases.h"
#include "tests/kernels/matrix.h"

namespace sfmamba {
namespace {

template <typename T, void (*kGelu)(const GeluArgs<T>&, CpuIsa)>
void Gelu(benchmark::State& state) {
  const int rows = state.range(1) * state.range(2), channels = state.range(3);
  std::mt19937 random(1);
  Matrix<T> x(rows, channels, kDense), y(rows, channels, kDense);
  x.FillNormal(random, 0, 1);
  const GeluArgs<T> args{rows,       channels, x.data(),
                         x.stride(), y.data(), y.stride()};
  for (auto _ : state) kGelu(args, IsaOf(state));
  Report(state);
}
BENCHMARK_TEMPLATE(Gelu, float, GeluErfCpu<float>)->Apply(StageCases<8>);
BENCHMARK_TEMPLATE(Gelu, float, GeluTanhCpu<float>)->Apply(StageCases<8>);
BENCHMARK_TEMPLATE(Gelu, BFloat16, GeluErfCpu<BFloat16>)->Apply(StageCases<8>);

}  // namespace
}  // namespace sfmamba

BENCHMARK_MAIN();
