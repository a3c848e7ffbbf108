#include <limits>

#include "gtest/gtest.h"
#include "kernels/scan/selective_scan_cuda.h"
#include "tests/kernels/scan/device_scan.h"

// Tests that the sequences of one call do not affect each other, and that a
// token does not affect earlier tokens. With every plan, the outputs must keep
// all their bits if another sequence or a later token changes.
namespace sfmamba::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int kLength = 33, kChannels = 8;

Matrix<float> ScanProblem<float>::*const kInputs[] = {
    &ScanProblem<float>::u, &ScanProblem<float>::dt, &ScanProblem<float>::B,
    &ScanProblem<float>::C};

void CopyToken(const ScanProblem<float>& from, int64_t i,
               ScanProblem<float>* to, int64_t j) {
  for (const auto input : kInputs) (to->*input).CopyRow(j, from.*input, i);
}

// Tests each plan with one row per sequence and folded into one row.
class SelectiveScanIsolationTest : public testing::TestWithParam<ScanPlan> {
 protected:
  void SetUp() override {
    if (!HasDevice()) GTEST_SKIP() << "no GPU";
  }

  // Calls `test` with the plan as it is, then with all sequences in one row.
  template <typename Test>
  void ForRows(Test test) {
    ScanPlan plan = GetParam();
    test(plan);
    if (plan.kernel == ScanPlan::kChunk) return;  // This kernel has no rows.
    SCOPED_TRACE("in one row");
    plan.rows = 1;
    test(plan);
  }
};

INSTANTIATE_TEST_SUITE_P(Plan, SelectiveScanIsolationTest,
                         testing::ValuesIn(AllScanPlans()), ScanPlanName);

TEST_P(SelectiveScanIsolationTest, OrderOfSequencesDoesNotMatter) {
  constexpr int kCount = 4;
  const int order[kCount] = {3, 0, 2, 1};
  const ScanProblem<float> scan = MakeScan<float>(kCount * kLength, kChannels);
  ScanProblem<float> permuted = scan;
  for (int k = 0; k < kCount; ++k) {
    for (int i = 0; i < kLength; ++i) {
      CopyToken(scan, order[k] * kLength + i, &permuted, k * kLength + i);
    }
  }
  ForRows([&](const ScanPlan& plan) {
    // With kFold, the output bits of a sequence depend on its place in the row.
    if (plan.kernel == ScanPlan::kFold && plan.rows == 1) return;
    const PackedSequences sequences{kCount, kLength};
    const Matrix<float> y = ScanOnDevice(scan, sequences, plan);
    const Matrix<float> z = ScanOnDevice(permuted, sequences, plan);
    for (int k = 0; k < kCount; ++k) {
      for (int i = 0; i < kLength; ++i) {
        ASSERT_TRUE(z.RowEquals(k * kLength + i, y, order[k] * kLength + i));
      }
    }
  });
}

TEST_P(SelectiveScanIsolationTest, OutputsDoNotDependOnLaterTokens) {
  constexpr int kTokens = 70;
  const ScanProblem<float> scan = MakeScan<float>(kTokens, kChannels);
  const Matrix<float> y = ScanOnDevice(scan, {1, kTokens}, GetParam());
  for (const int prefix : {1, 31, 32, 33, 50, 69}) {
    for (const float later : {0.5f, kNan, kInf}) {
      ScanProblem<float> changed = scan;
      for (const auto input : kInputs) {
        Matrix<float>& matrix = changed.*input;
        for (int i = prefix; i < kTokens; ++i) {
          for (int c = 0; c < matrix.columns(); ++c) matrix.at(i, c) = later;
        }
      }
      const Matrix<float> z = ScanOnDevice(changed, {1, kTokens}, GetParam());
      for (int i = 0; i < prefix; ++i) {
        ASSERT_TRUE(z.RowEquals(i, y, i))
            << "prefix " << prefix << " row " << i << " later " << later;
      }
    }
  }
}

// One value in the second of three sequences is bad. The outputs of the other
// sequences, and of the earlier tokens of the same sequence, must keep their
// bits.
TEST_P(SelectiveScanIsolationTest, PoisonStaysInItsSequence) {
  const ScanProblem<float> scan = MakeScan<float>(3 * kLength, kChannels);
  const PackedSequences sequences{3, kLength};
  ForRows([&](const ScanPlan& plan) {
    // If plan.rows is 0, each sequence has its own row and its own blocks, so
    // the sequences share no memory of a block. The emulator is slow and skips
    // this case.
    if (Emulated() && plan.kernel == ScanPlan::kFold && plan.rows == 0) return;
    const Matrix<float> y = ScanOnDevice(scan, sequences, plan);
    for (const auto input : kInputs) {
      for (const float poison : {kNan, kInf, -kInf}) {
        for (const int position : {0, kLength / 2, kLength - 1}) {
          const int at = kLength + position;
          ScanProblem<float> poisoned = scan;
          (poisoned.*input).at(at, 3) = poison;
          const Matrix<float> z = ScanOnDevice(poisoned, sequences, plan);
          for (int i = 0; i < 3 * kLength; ++i) {
            if (i >= at && i < 2 * kLength) continue;
            ASSERT_TRUE(z.RowEquals(i, y, i)) << "row " << i;
            ASSERT_TRUE(z.RowIsFinite(i)) << "row " << i;
          }
          if (poison != poison) {
            EXPECT_TRUE(std::isnan(z.at(at, 3)));
          }
        }
      }
    }
  });
}

// All values of one sequence are bad. The sequences have different lengths.
TEST_P(SelectiveScanIsolationTest, PoisonStaysInItsRaggedSequence) {
  const std::vector<int32_t> offsets = {0, 1, 6, 39, 56, 57, 58, 80};
  const int count = static_cast<int>(offsets.size()) - 1;
  const PackedSequences sequences{count, 0, offsets.data()};
  const ScanProblem<float> scan = MakeScan<float>(80, kChannels);
  ForRows([&](const ScanPlan& plan) {
    const Matrix<float> y = ScanOnDevice(scan, sequences, plan);
    for (int k = 0; k < count; ++k) {
      ScanProblem<float> poisoned = scan;
      for (const auto input : kInputs) {
        Matrix<float>& matrix = poisoned.*input;
        for (int i = offsets[k]; i < offsets[k + 1]; ++i) {
          for (int c = 0; c < matrix.columns(); ++c) {
            matrix.at(i, c) = (i + c) % 2 == 0 ? kNan : kInf;
          }
        }
      }
      const Matrix<float> z = ScanOnDevice(poisoned, sequences, plan);
      for (int i = 0; i < 80; ++i) {
        if (i >= offsets[k] && i < offsets[k + 1]) continue;
        ASSERT_TRUE(z.RowEquals(i, y, i)) << "sequence " << k << " row " << i;
        ASSERT_TRUE(z.RowIsFinite(i)) << "row " << i;
      }
    }
  });
}

TEST_P(SelectiveScanIsolationTest, ReplacedSequenceChangesNoOther) {
  const ScanProblem<float> scan = MakeScan<float>(3 * kLength, kChannels);
  const ScanProblem<float> other =
      MakeScan<float>(3 * kLength, kChannels, 8, /*seed=*/2);
  ScanProblem<float> changed = scan;
  for (int i = kLength; i < 2 * kLength; ++i) CopyToken(other, i, &changed, i);
  ForRows([&](const ScanPlan& plan) {
    const Matrix<float> y = ScanOnDevice(scan, {3, kLength}, plan);
    const Matrix<float> z = ScanOnDevice(changed, {3, kLength}, plan);
    for (int i = 0; i < 3 * kLength; ++i) {
      EXPECT_EQ(z.RowEquals(i, y, i), i / kLength != 1) << "row " << i;
    }
  });
}

// A thread with two channels must round like a thread with one channel.
TEST(SelectiveScanBitsTest, AlignmentAndPairsChangeNoBit) {
  if (!HasDevice()) GTEST_SKIP() << "no GPU";
  for (const int states : {8, 16}) {
    const ScanProblem<BFloat16> paired(35, 12, states, 1, /*padding=*/6);
    const ScanProblem<BFloat16> odd(35, 12, states, 1, /*padding=*/5);
    const Matrix<BFloat16> one = ScanOnDevice(paired, {1, 35}, LanePlan(1));
    const Matrix<BFloat16> two = ScanOnDevice(paired, {1, 35}, LanePlan(1, 2));
    const Matrix<BFloat16> apart = ScanOnDevice(odd, {1, 35}, LanePlan(1, 2));
    for (int i = 0; i < 35; ++i) {
      EXPECT_TRUE(one.RowEquals(i, two, i)) << i;
      EXPECT_TRUE(one.RowEquals(i, apart, i)) << i;
    }
  }
}

TEST(SelectiveScanBitsTest, ThreadsOfABlockChangeNoBit) {
  if (!HasDevice()) GTEST_SKIP() << "no GPU";
  const ScanProblem<float> scan = MakeScan<float>(40, 66);
  for (const int lanes : {1, 8}) {
    ScanPlan plan = LanePlan(lanes);
    const Matrix<float> y = ScanOnDevice(scan, {1, 40}, plan);
    for (plan.threads = 128; plan.threads <= 256; plan.threads += 32) {
      EXPECT_TRUE(ScanOnDevice(scan, {1, 40}, plan) == y) << plan.threads;
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels
