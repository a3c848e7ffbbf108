#ifndef SFMAMBA_TESTS_KERNELS_BENCHMARK_CASES_H_
#define SFMAMBA_TESTS_KERNELS_BENCHMARK_CASES_H_

#include <algorithm>
#include <random>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/base/packed_sequences.h"
#include "kernels/simd/cpu_features.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {

constexpr int kDense = 0;  // The padding of a Matrix: none, as in a model.

// Repeats a benchmark five times and reports the minimum, because the machine
// is rarely idle.
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

// Adds a case for each instruction set of this CPU. Each case reports the
// minimum of five runs.
inline void IsaCases(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("isa")->Unit(benchmark::kMillisecond);
  for (CpuIsa isa : SupportedCpuIsas()) benchmark->Arg(static_cast<int>(isa));
  LeastOfFive(benchmark);
}

// Adds a case for each instruction set of this CPU, for stages 3 and 4 of
// SF-Mamba T, S and B at 224 x 224 pixels, with batches of 1 and 8. The stages
// have 196 and 49 tokens plus two auxiliary ones. A stage with C channels has a
// scan with C/2 channels. The measured kernel has kWidth times as many channels
// as the scan.
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

// The activations of one of StageCases(), stored as in a model.
template <typename T>
struct StageTokens {
  explicit StageTokens(const benchmark::State& state)
      : channels(state.range(3)),
        sequences{static_cast<int>(state.range(1)),
                  static_cast<int>(state.range(2))},
        x(sequences.end(sequences.count - 1), channels, kDense),
        y(sequences.end(sequences.count - 1), channels, kDense) {
    std::mt19937 random(1);
    x.FillNormal(random, 0, 1);
  }

  int channels;
  PackedSequences sequences;
  Matrix<T> x;  // [tokens, channels], random
  Matrix<T> y;  // The output, with the same shape as x.
};

// Times kernel(isa) with the case's instruction set and labels the case with
// this instruction set.
template <typename Kernel>
void Time(benchmark::State& state, Kernel kernel) {
  const CpuIsa isa = static_cast<CpuIsa>(state.range(0));
  for (auto _ : state) kernel(isa);
  state.SetLabel(CpuIsaName(isa));
}

// Times one of StageCases() and reports the nanoseconds of one core per (token,
// channel).
template <typename Kernel>
void TimePerValue(benchmark::State& state, Kernel kernel) {
  Time(state, kernel);
  const double values =
      double(state.range(1)) * state.range(2) * state.range(3);
  state.counters["ns_per_value"] = benchmark::Counter(
      values * 1e-9, benchmark::Counter::kIsIterationInvariantRate |
                         benchmark::Counter::kInvert);
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_BENCHMARK_CASES_H_
