#include "kernels/scan/selective_scan_cuda.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/scan/device_scan.h"

// Tests that the scan is correct with every plan and that folding has no effect
// on it. selective_scan_isolation_cuda_test.cc tests that sequences do not
// affect each other.
namespace sfmamba::kernels {
namespace {

// Returns the maximum of the product tokens * channels for one case of a test.
int64_t MostWork() { return Emulated() ? 3400 : 400000; }

class SelectiveScanCudaTest : public testing::TestWithParam<ScanPlan> {
 protected:
  void SetUp() override {
    if (!HasDevice()) GTEST_SKIP() << "no GPU";
  }

  template <typename T>
  void ExpectAgreement(const ScanProblem<T>& scan,
                       const PackedSequences& sequences) {
    ExpectScanned(ScanOnDevice(scan, sequences, GetParam()),
                  scan.Reference(sequences), ScanTolerance(GetParam()));
  }
};

INSTANTIATE_TEST_SUITE_P(Plan, SelectiveScanCudaTest,
                         testing::ValuesIn(AllScanPlans()), ScanPlanName);

TEST_P(SelectiveScanCudaTest, AgreesWithFp64) {
  std::vector<int> lengths = {1, 2, 31, 32, 33, 49, 51};
  std::vector<int> all_channels = {7, 8, 66, 160};
  if (!Emulated()) {
    for (const int length : {196, 198, 2047, 2049}) lengths.push_back(length);
    all_channels.push_back(392);
  }
  for (const int length : lengths) {
    for (const int channels : all_channels) {
      for (const int count : {1, 2, 31}) {
        const int64_t tokens = int64_t{length} * count;
        if (tokens * channels > MostWork()) continue;
        SCOPED_TRACE(testing::Message() << count << " sequences of " << length
                                        << ", channels " << channels);
        const ScanProblem<float> scan = MakeScan<float>(tokens, channels);
        ScanPlan plan = GetParam();
        // On the emulator, the number of rows is limited. Each row has its own
        // blocks, and the emulator needs time for each block.
        if (Emulated()) plan.rows = std::min(count, 4);
        ExpectScanned(ScanOnDevice(scan, {count, length}, plan),
                      scan.Reference({count, length}), ScanTolerance(plan));
      }
    }
  }
}

TEST_P(SelectiveScanCudaTest, AgreesWithFp64InHalfPrecision) {
  for (const int length : {1, 33, 51}) {
    ExpectAgreement(MakeScan<BFloat16>(2 * length, 26), {2, length});
    ExpectAgreement(MakeScan<Float16>(2 * length, 26), {2, length});
  }
}

TEST_P(SelectiveScanCudaTest, AgreesWithFp64For16States) {
  ExpectAgreement(MakeScan<float>(99, 10, 16), {3, 33});
  ExpectAgreement(MakeScan<BFloat16>(99, 10, 16), {1, 99});
  ExpectAgreement(MakeScan<Float16>(49, 66, 16), {1, 49});
}

TEST_P(SelectiveScanCudaTest, AgreesWithFp64ForLongSequences) {
  ExpectAgreement(MakeScan<float>(700, 3), {1, 700});
  ExpectAgreement(MakeScan<float>(2 * 523, 2), {2, 523});
}

// Rows may begin in the middle of a vector and have odd strides.
TEST_P(SelectiveScanCudaTest, AgreesWithFp64AtAnyAlignment) {
  ExpectAgreement(ScanProblem<BFloat16>(70, 12, 8, 1, /*padding=*/5), {2, 35});
  ExpectAgreement(ScanProblem<float>(70, 12, 8, 1, /*padding=*/0), {2, 35});
}

// The first sequence may begin anywhere. The others follow without gaps.
TEST_P(SelectiveScanCudaTest, BeginsWhereTheSegmentsDo) {
  const ScanProblem<float> scan = MakeScan<float>(90, 10);
  const PackedSequences sequences{2, 20, nullptr, 13};
  const Matrix<float> y = ScanOnDevice(scan, sequences, GetParam());
  const Matrix<double> expected = scan.Reference(sequences);
  ExpectScanned(y, expected, ScanTolerance(GetParam()));
  for (int i = 0; i < 90; ++i) {
    if (i >= 13 && i < 53) continue;
    for (int d = 0; d < 10; ++d) ASSERT_EQ(y.at(i, d), 0) << i;
  }
}

TEST_P(SelectiveScanCudaTest, EveryFoldGivesTheSame) {
  for (const int length : {1, 9, 49}) {
    for (const int count : {2, 7}) {
      const ScanProblem<float> scan = MakeScan<float>(length * count, 8);
      const PackedSequences sequences{count, length};
      ScanPlan plan = GetParam();
      if (plan.kernel == ScanPlan::kChunk) return;  // This kernel has no rows.
      const Matrix<float> unfolded = ScanOnDevice(scan, sequences, plan);
      for (plan.rows = 1; plan.rows <= count + 1; ++plan.rows) {
        SCOPED_TRACE(testing::Message() << count << " x " << length << " in "
                                        << plan.rows << " rows");
        const Matrix<float> folded = ScanOnDevice(scan, sequences, plan);
        if (plan.kernel == ScanPlan::kFold) {
          ExpectScanned(folded, ToDouble(unfolded), 1e-5);
        } else {
          EXPECT_TRUE(folded == unfolded);
        }
      }
    }
  }
}

TEST_P(SelectiveScanCudaTest, RaggedEqualsOneCallPerSequence) {
  // The third and the last sequence are empty.
  const std::vector<int32_t> offsets = {0, 1, 34, 34, 36, 85, 168, 168};
  const int count = static_cast<int>(offsets.size()) - 1;
  const ScanProblem<float> scan = MakeScan<float>(168, 18);
  ScanPlan plan = GetParam();
  Matrix<float> apart(168, 18, kScanPadding);
  for (int k = 0; k < count; ++k) {
    const PackedSequences one{1, offsets[k + 1] - offsets[k], nullptr,
                              offsets[k]};
    const Matrix<float> y = ScanOnDevice(scan, one, plan);
    for (int i = offsets[k]; i < offsets[k + 1]; ++i) apart.CopyRow(i, y, i);
  }
  const PackedSequences all{count, 0, offsets.data()};
  for (const int rows : {0, 1, 3}) {
    if (plan.kernel == ScanPlan::kChunk && rows > 0) break;
    plan.rows = rows;
    const Matrix<float> together = ScanOnDevice(scan, all, plan);
    if (plan.kernel == ScanPlan::kFold) {
      ExpectScanned(together, ToDouble(apart), 1e-5);
    } else {
      EXPECT_TRUE(together == apart) << rows << " rows";
    }
    ExpectScanned(together, scan.Reference(all), ScanTolerance(plan));
  }
}

TEST_P(SelectiveScanCudaTest, TwoRunsGiveTheSameBits) {
  const ScanProblem<float> scan = MakeScan<float>(99, 34);
  EXPECT_TRUE(ScanOnDevice(scan, {3, 33}, GetParam()) ==
              ScanOnDevice(scan, {3, 33}, GetParam()));
}

// A decay around or below the smallest fp32 value erases the state at once.
TEST_P(SelectiveScanCudaTest, VerySteepDecaysForgetTheState) {
  for (const float x : {10.0f, 15.0f, 25.0f, 1e4f}) {
    ScanProblem<float> scan = MakeScan<float>(70, 10);
    scan.bias.assign(10, x);
    for (float& a : scan.A) a = -9;
    ExpectAgreement(scan, {1, 70});
  }
}

TEST_P(SelectiveScanCudaTest, InfinitelySteepDecayGivesNoNan) {
  ScanProblem<float> scan = MakeScan<float>(70, 10);
  for (float& a : scan.A) a = -std::numeric_limits<float>::infinity();
  const Matrix<float> y = ScanOnDevice(scan, {1, 70}, GetParam());
  for (int i = 0; i < 70; ++i) EXPECT_TRUE(y.RowIsFinite(i)) << i;
}

TEST_P(SelectiveScanCudaTest, VanishingDeltaKeepsTheState) {
  ScanProblem<float> scan = MakeScan<float>(80, 10);
  scan.D.assign(10, 0.0f);
  for (int i = 0; i < 80; ++i) {
    for (int n = 0; n < 8; ++n) scan.C.at(i, n) = 1;
    if (i < 40) continue;
    for (int d = 0; d < 10; ++d) scan.dt.at(i, d) = -100;
  }
  const Matrix<float> y = ScanOnDevice(scan, {1, 80}, GetParam());
  ExpectScanned(y, scan.Reference({1, 80}), ScanTolerance(GetParam()));
  if (GetParam().kernel != ScanPlan::kLane)
    return;  // The other kernels scan pieces, which adds a rounding per piece.
  for (int i = 40; i < 80; ++i) EXPECT_TRUE(y.RowEquals(i, y, 39)) << i;
}

TEST_P(SelectiveScanCudaTest, LargeDeltaStaysExact) {
  for (const float x : {20.0f, 50.0f, 88.0f, 200.0f}) {
    ScanProblem<float> scan = MakeScan<float>(70, 10);
    for (int d = 0; d < 10; ++d) {
      scan.dt.at(3, d) = x;
      scan.dt.at(40, d) = x;
    }
    scan.bias.assign(10, 0.0f);
    ExpectAgreement(scan, {1, 70});
  }
}

class SelectiveScanCudaLauncherTest : public DeviceTest {
 protected:
  SelectiveScanCudaLauncherTest() : memory_(64) {
    args_.channels = 2;
    args_.states = 8;
    args_.u = args_.dt = args_.B = args_.C = memory_.data();
    args_.y = memory_.data();
    args_.A = args_.D = args_.bias = memory_.data();
    args_.u_stride = args_.dt_stride = args_.y_stride = args_.a_stride = 2;
    args_.bc_stride = 8;
    args_.sequences = {1, 1};
  }

  std::string Refusal(const ScanPlan& plan = {}) const {
    const absl::Status status =
        SelectiveScanCuda(args_, plan, nullptr, TestStream());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  const DeviceArray<float> memory_;
  SelectiveScanArgs<float> args_{};
};

TEST_F(SelectiveScanCudaLauncherTest, NoSequencesAndNoTokensAreNothingToDo) {
  args_.sequences = {0, 5};
  EXPECT_EQ(SelectiveScanCuda(args_, {}, nullptr, TestStream()),
            absl::OkStatus());
  args_.sequences = {5, 0};
  EXPECT_EQ(SelectiveScanCuda(args_, {}, nullptr, TestStream()),
            absl::OkStatus());
  EXPECT_TRUE(memory_.GuardsIntact());
}

TEST_F(SelectiveScanCudaLauncherTest, NamesTheFieldItRefuses) {
  ScanPlan plan;
  plan.lanes = 16;
  EXPECT_EQ(Refusal(plan),
            "scan plan: lanes: got 16, expected 1 or 2 or 4 or 8");
  EXPECT_EQ(Refusal(ChunkPlan(3, 1)),
            "selective_scan: scratch: got null, expected 144 bytes");
  args_.states = 4;
  EXPECT_EQ(Refusal(), "selective_scan: states: got 4, expected 8 or 16");
  args_.states = 8;
  args_.bc_stride = 7;
  EXPECT_EQ(Refusal(),
            "selective_scan: bc_stride: got 7, expected 8 to 2147483647");
  args_.bc_stride = 8;
  args_.D = nullptr;
  EXPECT_EQ(Refusal(), "selective_scan: D: got null, expected device memory");
  args_.sequences = {-1, 4};
  EXPECT_EQ(Refusal(),
            "selective_scan: sequences.count: got -1, expected at least 0");
}

}  // namespace
}  // namespace sfmamba::kernels
