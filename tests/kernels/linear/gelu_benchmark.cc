#include "benchmark/benchmark.h"
#include "kernels/linear/gelu.h"
#include "tests/kernels/benchmark_cases.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

template <typename T, void (*kGelu)(const GeluArgs<T>&, CpuIsa)>
void Gelu(benchmark::State& state) {
  StageTokens<T> tokens(state);
  const GeluArgs<T> args{tokens.x.rows(),   tokens.channels, tokens.x.data(),
                         tokens.x.stride(), tokens.y.data(), tokens.y.stride()};
  TimePerValue(state, [&](CpuIsa isa) { kGelu(args, isa); });
}
BENCHMARK_TEMPLATE(Gelu, float, GeluErfCpu<float>)->Apply(StageCases<8>);
BENCHMARK_TEMPLATE(Gelu, float, GeluTanhCpu<float>)->Apply(StageCases<8>);
BENCHMARK_TEMPLATE(Gelu, BFloat16, GeluErfCpu<BFloat16>)->Apply(StageCases<8>);

}  // namespace
}  // namespace sfmamba::kernels

BENCHMARK_MAIN();
