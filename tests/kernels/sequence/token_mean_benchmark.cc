#include "benchmark/benchmark.h"
#include "kernels/sequence/token_mean.h"
#include "tests/kernels/benchmark_cases.h"

namespace sfmamba::kernels {
namespace {

// Times the filling of each sequence's auxiliary tokens, as at the start of a
// stage.
template <typename T>
void TokenMean(benchmark::State& state) {
  StageTokens<T> tokens(state);
  TokenMeanArgs<T> args{};
  args.channels = tokens.channels;
  args.x = tokens.x.data();
  args.x_stride = tokens.x.stride();
  args.margin = 1;
  args.mean = &tokens.x.at(0, 0);
  args.copy = &tokens.x.at(tokens.sequences.length - 1, 0);
  args.mean_stride = tokens.sequences.length * tokens.x.stride();
  args.sequences = tokens.sequences;
  TimePerValue(state, [&](CpuIsa isa) { TokenMeanCpu(args, isa); });
}
BENCHMARK_TEMPLATE(TokenMean, float)->Apply(StageCases<2>);
BENCHMARK_TEMPLATE(TokenMean, BFloat16)->Apply(StageCases<2>);

}  // namespace
}  // namespace sfmamba::kernels

BENCHMARK_MAIN();
