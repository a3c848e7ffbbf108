#ifndef SFMAMBA_TESTS_KERNELS_SCAN_DEVICE_SCAN_H_
#define SFMAMBA_TESTS_KERNELS_SCAN_DEVICE_SCAN_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/scan/scan_plan.h"
#include "kernels/scan/selective_scan_cuda.h"
#include "tests/kernels/cuda/device_matrix.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/kernels/scan/scan_problem.h"

namespace sfmamba::kernels {

// With this padding, rows are aligned for pairs if the number of channels is
// even.
constexpr int kScanPadding = 6;

template <typename T>
ScanProblem<T> MakeScan(int64_t tokens, int channels, int states = 8,
                        int seed = 1) {
  return ScanProblem<T>(tokens, channels, states, seed, kScanPadding);
}

// Returns the result of SelectiveScanCuda, or of another function with its
// arguments. The test fails if the function writes anything but y.
template <typename T, typename Scan>
Matrix<T> RunOnDevice(const ScanProblem<T>& problem,
                      const PackedSequences& sequences, int64_t scratch_bytes,
                      Scan scan) {
  const DeviceMatrix<T> u(problem.u), dt(problem.dt), B(problem.B),
      C(problem.C);
  const DeviceMatrix<T> y(
      Matrix<T>(problem.u.rows(), problem.u.columns(),
                static_cast<int>(problem.u.stride() - problem.u.columns())));
  const DeviceArray<float> A(problem.A), D(problem.D), bias(problem.bias);
  const DeviceArray<float> scratch(scratch_bytes / sizeof(float));
  std::vector<int32_t> offsets(1);
  if (sequences.offsets != nullptr) {
    offsets.assign(sequences.offsets, sequences.offsets + sequences.count + 1);
  }
  const DeviceArray<int32_t> device_offsets(offsets);
  SelectiveScanArgs<T> args{};
  args.channels = problem.u.columns();
  args.states = problem.B.columns();
  args.u = u.data();
  args.u_stride = u.stride();
  args.dt = dt.data();
  args.dt_stride = dt.stride();
  args.B = B.data();
  args.C = C.data();
  args.bc_stride = B.stride();
  args.y = y.data();
  args.y_stride = y.stride();
  args.A = A.data();
  args.a_stride = args.channels;
  args.D = D.data();
  args.bias = bias.data();
  args.sequences = sequences;
  if (sequences.offsets != nullptr) {
    args.sequences.offsets = device_offsets.data();
  }
  EXPECT_EQ(scan(args, scratch.data(), TestStream()), absl::OkStatus());
  EXPECT_TRUE(scratch.GuardsIntact());
  return y.ToHost();
}

template <typename T>
Matrix<T> ScanOnDevice(const ScanProblem<T>& problem,
                       const PackedSequences& sequences, const ScanPlan& plan) {
  return RunOnDevice(problem, sequences,
                     ScanScratchBytes(plan, sequences.count,
                                      problem.u.columns(), problem.B.columns()),
                     [&plan](const SelectiveScanArgs<T>& args, void* scratch,
                             CudaStream stream) {
                       return SelectiveScanCuda(args, plan, scratch, stream);
                     });
}

inline ScanPlan LanePlan(int lanes, int channels_per_thread = 1) {
  ScanPlan plan;
  plan.lanes = lanes;
  plan.channels_per_thread = channels_per_thread;
  return plan;
}

inline ScanPlan FoldPlan(int items, int rows = 0) {
  ScanPlan plan;
  plan.kernel = ScanPlan::kFold;
  plan.items = items;
  plan.rows = rows;
  return plan;
}

inline ScanPlan ChunkPlan(int chunks, int lanes) {
  ScanPlan plan;
  plan.kernel = ScanPlan::kChunk;
  plan.chunks = chunks;
  plan.lanes = lanes;
  return plan;
}

// Returns a plan for each compiled form of a kernel.
inline std::vector<ScanPlan> AllScanPlans() {
  std::vector<ScanPlan> plans = {
      LanePlan(1),     LanePlan(1, 2),  LanePlan(2),     LanePlan(4),
      LanePlan(8),     ChunkPlan(1, 1), ChunkPlan(2, 1), ChunkPlan(3, 2),
      ChunkPlan(4, 8), ChunkPlan(11, 4)};
  for (const int items : {2, 4, 7, 8, 13, 16}) plans.push_back(FoldPlan(items));
  return plans;
}

inline std::string ScanPlanName(const testing::TestParamInfo<ScanPlan>& info) {
  const ScanPlan& plan = info.param;
  switch (plan.kernel) {
    case ScanPlan::kLane:
      return absl::StrCat("Lane", plan.lanes, "x", plan.channels_per_thread);
    case ScanPlan::kFold:
      return absl::StrCat("Fold", plan.items);
    case ScanPlan::kChunk:
      break;
  }
  return absl::StrCat("Chunk", plan.chunks, "Lane", plan.lanes);
}

// Returns the largest fp32 error allowed for a plan's kernel, relative to the
// largest output.
inline double ScanTolerance(const ScanPlan& plan) {
  return plan.kernel == ScanPlan::kLane ? 5e-6 : 1e-5;
}

// Return the largest relative error of rounding to T.
inline double RoundingOf(float) { return 0; }
inline double RoundingOf(BFloat16) { return 0x1p-8; }
inline double RoundingOf(Float16) { return 0x1p-11; }

// Expects that `actual` differs from `expected` by at most `scaled` times the
// largest expected magnitude, plus one rounding to T.
template <typename T>
void ExpectScanned(const Matrix<T>& actual, const Matrix<double>& expected,
                   double scaled) {
  // 2^-25 is half of the smallest fp16 step.
  const double rounding = RoundingOf(T{}), least = sizeof(T) == 2 ? 0x1p-25 : 0;
  double largest = 0;
  for (int64_t i = 0; i < expected.rows(); ++i) {
    for (int c = 0; c < expected.columns(); ++c) {
      largest = std::max(largest, std::abs(expected.at(i, c)));
    }
  }
  ASSERT_GT(largest, 0);
  for (int64_t i = 0; i < expected.rows(); ++i) {
    for (int c = 0; c < expected.columns(); ++c) {
      const double want = expected.at(i, c);
      const double got = static_cast<float>(actual.at(i, c));
      const double allowed =
          scaled * largest + rounding * std::abs(want) * 1.01 + least;
      ASSERT_LE(std::abs(got - want), allowed)
          << "row " << i << " column " << c << ": got " << got << ", expected "
          << want << ", largest " << largest;
    }
  }
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_SCAN_DEVICE_SCAN_H_
