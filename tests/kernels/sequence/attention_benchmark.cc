#include <random>
#include <utility>

#include "benchmark/benchmark.h"
#include "kernels/sequence/attention.h"
#include "tests/kernels/benchmark_cases.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

constexpr int kHeads = 8, kSize = 40;

// Adds benchmark cases for SF-Mamba T's stages 3 and 4 at 224 x 224 pixels. The
// last case is like stage 3 of a detector with 84 x 84 tokens, if one call
// computes only a seventh of the queries.
void AttentionCases(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"isa", "queries", "tokens"});
  for (const auto& [queries, tokens] :
       {std::pair(196, 196), {198, 198}, {51, 51}, {1008, 7056}}) {
    for (CpuIsa isa : SupportedCpuIsas()) {
      benchmark->Args({static_cast<int>(isa), queries, tokens});
    }
  }
  LeastOfFive(benchmark);
}

// Times one of kHeads heads. A row of `qkv` has the queries, keys and values of
// all heads. Reports the operations per second of one core. A multiplication
// and the addition of its result count as two operations.
template <typename W>
void Attention(benchmark::State& state) {
  const int64_t queries = state.range(1), tokens = state.range(2);
  const int width = kHeads * kSize;
  Matrix<W> qkv(tokens, 3 * width, kDense), y(queries, width, kDense);
  std::mt19937 random(1);
  qkv.FillNormal(random, 0, 1);
  AttentionArgs<W> args{};
  args.queries = queries;
  args.tokens = tokens;
  args.d = kSize;
  args.q = qkv.data();
  args.k = args.q + width;
  args.v = args.k + width;
  args.y = y.data();
  args.q_stride = args.k_stride = args.v_stride = qkv.stride();
  args.y_stride = y.stride();
  Time(state, [&](CpuIsa isa) { AttentionCpu(args, isa); });
  state.counters["flops"] =
      benchmark::Counter(4.0 * queries * tokens * kSize,
                         benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_TEMPLATE(Attention, float)->Apply(AttentionCases);
BENCHMARK_TEMPLATE(Attention, BFloat16)->Apply(AttentionCases);

}  // namespace
}  // namespace sfmamba::kernels

BENCHMARK_MAIN();
