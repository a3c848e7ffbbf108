#ifndef SFMAMBA_TESTS_KERNELS_BENCHMARK_CASES_H_
#define SFMAMBA_TESTS_KERNELS_BENCHMARK_CASES_H_

#include <algorithm>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/cpu_features.h"

namespace sfmamba {

constexpr int kDense = 0;  // The padding of a Matrix that a model would use.

// The machine is rarely quiet: the least of several runs is the kernel's own.
inline void LeastOfFive(benchmark::internal::Benchmark* benchmark) {
  benchmark->Repetitions(5)
      ->ComputeStatistics("min",
                          [](const std::vector<double>& times) {
                            return *std::min_element(times.begin(),
                                                     times.end());
                          })
      ->MinTime(0.02)
      ->ReportAggregatesOnly();
}

// One benchmark per instruction set of this processor, the least of five runs.
inline void IsaCases(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("isa")->Unit(benchmark::kMillisecond);
  for (CpuIsa isa : SupportedCpuIsas()) benchmark->Arg(static_cast<int>(isa));
  LeastOfFive(benchmark);
}

// One benchmark per instruction set of this processor, per stage 3 and 4 of
// SF-Mamba T, S and B at 224 x 224 (196 and 49 tokens and the two auxiliary
// ones), per batch of 1 and 8. kWidth is the kernel's channels over the scan's
// (C/2).
template <int kWidth>
void StageCases(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"isa", "batch", "tokens", "channels"});
  for (int channels : {160, 192, 256}) {
    for (int stage : {3, 4}) {
      for (int batch : {1, 8}) {
        for (CpuIsa isa : SupportedCpuIsas()) {
          benchmark->Args({static_cast<int>(isa), batch, stage == 3 ? 198 : 51,
                           channels * (stage == 3 ? 1 : 2) * kWidth});
        }
      }
    }
  }
  LeastOfFive(benchmark);
}

inline CpuIsa IsaOf(const benchmark::State& state) {
  return static_cast<CpuIsa>(state.range(0));
}

// Labels the case and reports nanoseconds of one core per (token, channel).
inline void Report(benchmark::State& state) {
  const double values =
      double(state.range(1)) * state.range(2) * state.range(3);
  state.SetLabel(CpuIsaName(IsaOf(state)));
  state.counters["ns_per_value"] = benchmark::Counter(
      values * 1e-9, benchmark::Counter::kIsIterationInvariantRate |
                         benchmark::Counter::kInvert);
}

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_KERNELS_BENCHMARK_CASES_H_
