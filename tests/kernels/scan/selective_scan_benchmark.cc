#include "benchmark/benchmark.h"
#include "kernels/scan/selective_scan.h"
#include "tests/kernels/benchmark_cases.h"
#include "tests/kernels/scan/scan_problem.h"

namespace sfmamba::kernels {
namespace {

template <typename T>
void SelectiveScan(benchmark::State& state) {
  const int batch = state.range(1), length = state.range(2);
  const ScanProblem<T> scan(batch * length, state.range(3), 8, 1, kDense);
  Matrix<T> y(batch * length, state.range(3), kDense);
  const SelectiveScanArgs<T> args = scan.Args({batch, length}, &y);
  TimePerValue(state, [&](CpuIsa isa) { SelectiveScanCpu(args, isa); });
}
BENCHMARK_TEMPLATE(SelectiveScan, float)->Apply(StageCases<1>);
BENCHMARK_TEMPLATE(SelectiveScan, BFloat16)->Apply(StageCases<1>);

}  // namespace
}  // namespace sfmamba::kernels

BENCHMARK_MAIN();
