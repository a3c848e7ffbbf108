#include "kernels/scan/selective_scan.h"

#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"
#include "tests/kernels/scan/scan_problem.h"

namespace sfmamba::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kTolerance = 5e-6;  // Relative to the largest output.

class SelectiveScanTest : public testing::TestWithParam<CpuIsa> {
 protected:
  // Returns the maximum of the product tokens * channels for one case of a
  // test. This limit keeps the time of a test at a few seconds.
  int64_t MostWork() const {
    return GetParam() == CpuIsa::kScalar ? 40000 : 400000;
  }
};

INSTANTIATE_TEST_SUITE_P(Isa, SelectiveScanTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

TEST_P(SelectiveScanTest, AgreesWithFp64) {
  for (int length : {1, 2, 31, 32, 33, 49, 51, 196, 198, 2047, 2049}) {
    for (int channels : {1, 7, 8, 66, 160, 392}) {
      for (int count : {1, 2, 31}) {
        const int64_t tokens = int64_t{length} * count;
        if (tokens * channels > 140000) continue;  // The reference is slow.
        SCOPED_TRACE(testing::Message() << count << " sequences of " << length
                                        << ", channels " << channels);
        const ScanProblem<float> scan(tokens, channels);
        const PackedSequences sequences{count, length};
        ExpectClose(scan.Run(sequences, GetParam()), scan.Reference(sequences),
                    kTolerance);
      }
    }
  }
}

TEST_P(SelectiveScanTest, AgreesWithFp64InBFloat16) {
  for (int length : {1, 33, 198}) {
    for (int channels : {7, 160}) {
      const ScanProblem<BFloat16> scan(2 * length, channels);
      const PackedSequences sequences{2, length};
      ExpectClose(scan.Run(sequences, GetParam()), scan.Reference(sequences),
                  kTolerance);
    }
  }
}

TEST_P(SelectiveScanTest, AgreesWithFp64ForOtherStateCounts) {
  for (int states : {1, 3, 16}) {
    const ScanProblem<float> scan(99, 20, states);
    const PackedSequences sequences{1, 99};
    ExpectClose(scan.Run(sequences, GetParam()), scan.Reference(sequences),
                kTolerance);
  }
}

TEST_P(SelectiveScanTest, OneStateAgreesWithFp64InBothDirections) {
  for (int length : {1, 2, 31, 32, 33, 49, 3136}) {
    for (int channels : {7, 40}) {
      SCOPED_TRACE(testing::Message() << length << " x " << channels);
      constexpr int kCount = 2;
      const PackedSequences sequences{kCount, length};
      const ScanProblem<float> scan(kCount * length, channels, /*states=*/1);
      ExpectClose(scan.Run(sequences, GetParam()), scan.Reference(sequences),
                  kTolerance);
      ScanProblem<float> backward = scan;
      for (int k = 0; k < kCount; ++k) {
        for (int i = 0; i < length; ++i) {
          const int to = k * length + i, from = (k + 1) * length - 1 - i;
          backward.u.CopyRow(to, scan.u, from);
          backward.dt.CopyRow(to, scan.dt, from);
          backward.B.CopyRow(to, scan.B, from);
          backward.C.CopyRow(to, scan.C, from);
        }
      }
      const Matrix<float> expected = backward.Run(sequences, GetParam());
      Matrix<float> reversed(kCount * length, channels);
      SelectiveScanCpu(Reversed(scan.Args(sequences, &reversed)), GetParam());
      EXPECT_TRUE(reversed.GuardsIntact());
      for (int k = 0; k < kCount; ++k) {
        for (int i = 0; i < length; ++i) {
          ASSERT_TRUE(reversed.RowEquals(k * length + i, expected,
                                         (k + 1) * length - 1 - i));
        }
      }
    }
  }
}

TEST_P(SelectiveScanTest, ReversesSequencesThatStartLater) {
  constexpr int kLength = 33;
  const ScanProblem<float> scan(3 * kLength, 20, /*states=*/1);
  Matrix<float> all(3 * kLength, 20), last(3 * kLength, 20);
  SelectiveScanCpu(Reversed(scan.Args({3, kLength}, &all)), GetParam());
  SelectiveScanCpu(
      Reversed(scan.Args(PackedSequences{3, kLength}.Slice(2, 3), &last)),
      GetParam());
  for (int i = 2 * kLength; i < 3 * kLength; ++i) {
    EXPECT_TRUE(last.RowEquals(i, all, i)) << i;
  }
}

// To fold means to distribute the sequences over a number of rows. This test
// makes one call per row, for the sequences of the row.
TEST_P(SelectiveScanTest, EveryFoldGivesTheSameBits) {
  for (int length : {1, 2, 3, 9, 49, 51, 196, 198, 256, 1024, 4098}) {
    for (int channels : {1, 7, 160, 392}) {
      for (int count : {1, 2, 6, 7, 12}) {
        const int64_t tokens = int64_t{length} * count;
        if (tokens * channels > MostWork()) continue;
        const ScanProblem<float> scan(tokens, channels);
        const PackedSequences all{count, length};
        const Matrix<float> unfolded = scan.Run(all, GetParam());
        for (int rows = 1; rows <= count; ++rows) {
          if (count % rows != 0) continue;
          const int per_row = count / rows;
          Matrix<float> folded(tokens, channels);
          for (int row = 0; row < rows; ++row) {
            const PackedSequences slice =
                all.Slice(row * per_row, (row + 1) * per_row);
            SelectiveScanCpu(scan.Args(slice, &folded), GetParam());
          }
          EXPECT_TRUE(folded == unfolded)
              << count << " x " << length << " in " << rows << " rows";
        }
      }
    }
  }
}

TEST_P(SelectiveScanTest, RaggedEqualsOneCallPerSequence) {
  const std::vector<int32_t> offsets = {0, 1, 34, 36, 85, 283, 314};
  const int count = 6;
  const ScanProblem<float> scan(314, 66);
  const Matrix<float> together =
      scan.Run({count, 0, offsets.data()}, GetParam());
  Matrix<float> apart(314, 66);
  for (int k = 0; k < count; ++k) {
    const PackedSequences one{1, offsets[k + 1] - offsets[k], nullptr,
                              offsets[k]};
    SelectiveScanCpu(scan.Args(one, &apart), GetParam());
  }
  EXPECT_TRUE(together == apart);
  ExpectClose(together, scan.Reference({count, 0, offsets.data()}), kTolerance);
}

TEST_P(SelectiveScanTest, OrderOfSequencesDoesNotMatter) {
  constexpr int kLength = 51, kCount = 5;
  const int order[] = {3, 0, 4, 1, 2};
  const ScanProblem<float> scan(kCount * kLength, 40);
  ScanProblem<float> permuted = scan;
  for (int k = 0; k < kCount; ++k) {
    for (int i = 0; i < kLength; ++i) {
      const int64_t to = k * kLength + i, from = order[k] * kLength + i;
      permuted.u.CopyRow(to, scan.u, from);
      permuted.dt.CopyRow(to, scan.dt, from);
      permuted.B.CopyRow(to, scan.B, from);
      permuted.C.CopyRow(to, scan.C, from);
    }
  }
  const Matrix<float> y = scan.Run({kCount, kLength}, GetParam());
  const Matrix<float> z = permuted.Run({kCount, kLength}, GetParam());
  for (int k = 0; k < kCount; ++k) {
    for (int i = 0; i < kLength; ++i) {
      ASSERT_TRUE(z.RowEquals(k * kLength + i, y, order[k] * kLength + i));
    }
  }
}

TEST_P(SelectiveScanTest, SlicesOfChannelsGiveTheSameBits) {
  const ScanProblem<float> scan(198, 66);
  const PackedSequences sequences{2, 99};
  const Matrix<float> whole = scan.Run(sequences, GetParam());
  for (int split : {1, 5, 8, 16, 32, 65}) {
    Matrix<float> sliced(198, 66);
    const SelectiveScanArgs<float> args = scan.Args(sequences, &sliced);
    SelectiveScanCpu(SliceChannels(args, 0, split), GetParam());
    SelectiveScanCpu(SliceChannels(args, split, 66), GetParam());
    EXPECT_TRUE(sliced == whole) << "split at " << split;
  }
}

TEST_P(SelectiveScanTest, OutputsDoNotDependOnLaterTokens) {
  constexpr int kLength = 99;
  const ScanProblem<float> scan(kLength, 20);
  const Matrix<float> y = scan.Run({1, kLength}, GetParam());
  for (int prefix : {1, 31, 32, 33, 50, 98}) {
    for (float later : {0.5f, kNan, kInf}) {
      ScanProblem<float> changed = scan;
      for (Matrix<float>* input :
           {&changed.u, &changed.dt, &changed.B, &changed.C}) {
        for (int i = prefix; i < kLength; ++i) {
          for (int c = 0; c < input->columns(); ++c) input->at(i, c) = later;
        }
      }
      const Matrix<float> z = changed.Run({1, kLength}, GetParam());
      for (int i = 0; i < prefix; ++i) {
        ASSERT_TRUE(z.RowEquals(i, y, i))
            << "prefix " << prefix << " row " << i;
      }
    }
  }
}

// One value in the second of three sequences is bad. The outputs of the other
// sequences, and of the earlier tokens of the same sequence, must keep their
// bits.
TEST_P(SelectiveScanTest, PoisonStaysInItsSequence) {
  constexpr int kLength = 49;
  const ScanProblem<float> scan(3 * kLength, 20);
  const Matrix<float> y = scan.Run({3, kLength}, GetParam());
  Matrix<float> ScanProblem<float>::*const inputs[] = {
      &ScanProblem<float>::u, &ScanProblem<float>::dt, &ScanProblem<float>::B,
      &ScanProblem<float>::C};
  for (auto input : inputs) {
    for (float poison : {kNan, kInf, -kInf}) {
      for (int position : {0, kLength / 2, kLength - 1}) {
        ScanProblem<float> poisoned = scan;
        (poisoned.*input).at(kLength + position, 3) = poison;
        const Matrix<float> z = poisoned.Run({3, kLength}, GetParam());
        for (int i = 0; i < 3 * kLength; ++i) {
          if (i >= kLength + position && i < 2 * kLength) continue;
          ASSERT_TRUE(z.RowEquals(i, y, i)) << "row " << i;
          ASSERT_TRUE(z.RowIsFinite(i)) << "row " << i;
        }
        if (poison != poison) {
          EXPECT_TRUE(std::isnan(z.at(kLength + position, 3)));
        }
      }
    }
  }
}

TEST_P(SelectiveScanTest, ReplacedSequenceChangesNoOther) {
  constexpr int kLength = 51;
  const ScanProblem<float> scan(3 * kLength, 20);
  const ScanProblem<float> other(3 * kLength, 20, 8, /*seed=*/2);
  ScanProblem<float> changed = scan;
  for (int i = kLength; i < 2 * kLength; ++i) {
    changed.u.CopyRow(i, other.u, i);
    changed.dt.CopyRow(i, other.dt, i);
    changed.B.CopyRow(i, other.B, i);
    changed.C.CopyRow(i, other.C, i);
  }
  const Matrix<float> y = scan.Run({3, kLength}, GetParam());
  const Matrix<float> z = changed.Run({3, kLength}, GetParam());
  for (int i = 0; i < 3 * kLength; ++i) {
    EXPECT_EQ(z.RowEquals(i, y, i), i / kLength != 1) << "row " << i;
  }
}

TEST_P(SelectiveScanTest, TwoRunsGiveTheSameBits) {
  const ScanProblem<float> scan(198, 66);
  EXPECT_TRUE(scan.Run({1, 198}, GetParam()) == scan.Run({1, 198}, GetParam()));
}

// A decay around or below the smallest fp32 value erases the state at once.
TEST_P(SelectiveScanTest, VerySteepDecaysForgetTheState) {
  for (float x : {10.0f, 15.0f, 25.0f, 1e4f}) {
    ScanProblem<float> scan(70, 20);
    scan.bias.assign(20, x);
    for (float& a : scan.A) a = -9;
    const Matrix<float> y = scan.Run({1, 70}, GetParam());
    ExpectClose(y, scan.Reference({1, 70}), kTolerance);
    if (x < 20)
      continue;  // exp(-9*20) is 0 in fp32, so tokens are independent.
    std::vector<int32_t> offsets(71);
    for (int i = 0; i <= 70; ++i) offsets[i] = i;
    EXPECT_TRUE(y == scan.Run({70, 0, offsets.data()}, GetParam()));
  }
}

TEST_P(SelectiveScanTest, InfinitelySteepDecayGivesNoNan) {
  ScanProblem<float> scan(70, 20);
  for (float& a : scan.A) a = -kInf;
  const Matrix<float> y = scan.Run({1, 70}, GetParam());
  for (int i = 0; i < 70; ++i) EXPECT_TRUE(y.RowIsFinite(i));
}

TEST_P(SelectiveScanTest, VanishingDeltaKeepsTheState) {
  ScanProblem<float> scan(80, 20);
  scan.D.assign(20, 0.0f);
  for (int i = 0; i < 80; ++i) {
    for (int n = 0; n < 8; ++n) scan.C.at(i, n) = 1;
    if (i < 40) continue;
    for (int d = 0; d < 20; ++d) scan.dt.at(i, d) = -100;
  }
  const Matrix<float> y = scan.Run({1, 80}, GetParam());
  for (int i = 40; i < 80; ++i) EXPECT_TRUE(y.RowEquals(i, y, 39)) << i;
}

TEST_P(SelectiveScanTest, LargeDeltaStaysExact) {
  for (float x : {20.0f, 50.0f, 88.0f, 200.0f}) {
    ScanProblem<float> scan(70, 20);
    for (int d = 0; d < 20; ++d) {
      scan.dt.at(3, d) = x;
      scan.dt.at(40, d) = x;
    }
    scan.bias.assign(20, 0.0f);
    ExpectClose(scan.Run({1, 70}, GetParam()), scan.Reference({1, 70}),
                kTolerance);
  }
}

TEST(SelectiveScanReferenceTest, IsLinearInU) {
  ScanProblem<double> scan = ScanProblem<float>(99, 20).InDouble();
  const Matrix<double> u = scan.u;
  const Matrix<double> v = ScanProblem<float>(99, 20, 8, 2).InDouble().u;
  auto run = [&](double a, double b) {
    for (int i = 0; i < 99; ++i) {
      for (int d = 0; d < 20; ++d) {
        scan.u.at(i, d) = a * u.at(i, d) + b * v.at(i, d);
      }
    }
    Matrix<double> y(99, 20);
    SelectiveScanReference(scan.Args({1, 99}, &y));
    return y;
  };
  const Matrix<double> y = run(1, 0), z = run(0, 1), sum = run(2, -3);
  for (int i = 0; i < 99; ++i) {
    for (int d = 0; d < 20; ++d) {
      EXPECT_NEAR(sum.at(i, d), 2 * y.at(i, d) - 3 * z.at(i, d), 1e-12);
    }
  }
}

// The expected values were computed by hand for one channel, one state and two
// tokens.
TEST(SelectiveScanReferenceTest, FollowsTheRecurrence) {
  const double u[] = {2, 3}, dt[] = {0.5, -1}, B[] = {1.5, -2}, C[] = {0.25, 4};
  const float A = -0.75f, D = 10, bias = 0.125f;
  double y[2];
  SelectiveScanArgs<double> args{};
  args.channels = args.states = 1;
  args.u = u;
  args.dt = dt;
  args.B = B;
  args.C = C;
  args.y = y;
  args.u_stride = args.dt_stride = args.bc_stride = args.y_stride = 1;
  args.A = &A;
  args.a_stride = 1;
  args.D = &D;
  args.bias = &bias;
  args.sequences = {1, 2};
  SelectiveScanReference(args);
  const double delta0 = std::log1p(std::exp(0.625));
  const double delta1 = std::log1p(std::exp(-0.875));
  const double h0 = delta0 * 1.5 * 2;
  const double h1 = std::exp(-0.75 * delta1) * h0 + delta1 * -2 * 3;
  EXPECT_NEAR(y[0], 0.25 * h0 + 20, 1e-14);
  EXPECT_NEAR(y[1], 4 * h1 + 30, 1e-14);
}

}  // namespace
}  // namespace sfmamba::kernels
