#include "kernels/sequence/layer_norm.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

constexpr double kTolerance = 2e-6;  // Relative to the largest output.

template <typename T>
struct Norm {
  Norm(int64_t tokens, int channels, float mean = 0.3f) : x(tokens, channels) {
    std::mt19937 random(1);
    x.FillNormal(random, mean, 2);
    gamma = Normals(random, channels, 1, 0.3f);
    beta = Normals(random, channels, 0, 0.3f);
  }

  // Returns y. If `swap` is true, swaps rows of `x` itself.
  Matrix<T> Run(const PackedSequences& sequences, bool swap, CpuIsa isa) {
    Matrix<T> y(x.rows(), x.columns());
    LayerNormArgs<T> args{};
    args.channels = x.columns();
    args.x = x.data();
    args.x_stride = x.stride();
    args.y = y.data();
    args.y_stride = y.stride();
    args.gamma = gamma.data();
    args.beta = beta.data();
    args.eps = 1e-5f;
    args.swap = swap;
    args.sequences = sequences;
    LayerNormCpu(args, isa);
    EXPECT_TRUE(y.GuardsIntact());
    EXPECT_TRUE(x.GuardsIntact());
    return y;
  }

  Matrix<double> Reference() const {
    Matrix<double> y(x.rows(), x.columns());
    const int channels = x.columns();
    for (int64_t i = 0; i < x.rows(); ++i) {
      double mean = 0, variance = 0;
      for (int c = 0; c < channels; ++c) {
        mean += static_cast<float>(x.at(i, c)) / double(channels);
      }
      for (int c = 0; c < channels; ++c) {
        const double difference = static_cast<float>(x.at(i, c)) - mean;
        variance += difference * difference / channels;
      }
      for (int c = 0; c < channels; ++c) {
        const double difference = static_cast<float>(x.at(i, c)) - mean;
        y.at(i, c) =
            difference / std::sqrt(variance + 1e-5f) * gamma[c] + beta[c];
      }
    }
    return y;
  }

  Matrix<T> x;
  std::vector<float> gamma, beta;
};

class LayerNormTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isa, LayerNormTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

TEST_P(LayerNormTest, FromFp32ToBf16IsFp32Rounded) {
  for (int channels : {1, 7, 33, 320}) {
    Norm<float> norm(12, channels), same = norm;
    const PackedSequences sequences{3, 4};
    const Matrix<float> expected = norm.Run(sequences, true, GetParam());
    Matrix<BFloat16> y(12, channels);
    LayerNormArgs<float, BFloat16> args{};
    args.channels = channels;
    args.x = same.x.data();
    args.x_stride = same.x.stride();
    args.y = y.data();
    args.y_stride = y.stride();
    args.gamma = same.gamma.data();
    args.beta = same.beta.data();
    args.eps = 1e-5f;
    args.swap = true;
    args.sequences = sequences;
    LayerNormCpu(args, GetParam());
    EXPECT_TRUE(y.GuardsIntact());
    EXPECT_TRUE(same.x == norm.x);
    for (int i = 0; i < 12; ++i) {
      for (int c = 0; c < channels; ++c) {
        ASSERT_EQ(y.at(i, c).bits, BFloat16(expected.at(i, c)).bits)
            << i << " " << c;
      }
    }
  }
}

TEST_P(LayerNormTest, AgreesWithFp64) {
  for (int channels : {1, 2, 7, 8, 33, 66, 320, 392, 2048}) {
    Norm<float> norm(51, channels);
    ExpectClose(norm.Run({1, 51}, false, GetParam()), norm.Reference(),
                kTolerance);
  }
}

TEST_P(LayerNormTest, AgreesWithFp64InBFloat16) {
  for (int channels : {7, 320}) {
    Norm<BFloat16> norm(51, channels);
    ExpectClose(norm.Run({1, 51}, false, GetParam()), norm.Reference(),
                kTolerance);
  }
}

// If the variance was the mean of squares minus the squared mean, it would lose
// all precision here.
TEST_P(LayerNormTest, KeepsTheVarianceBesideALargeMean) {
  Norm<float> norm(8, 320, /*mean=*/100);
  ExpectClose(norm.Run({1, 8}, false, GetParam()), norm.Reference(), 2e-5);
}

TEST_P(LayerNormTest, SwapByIndexEqualsSwapByCopy) {
  const std::vector<int32_t> offsets = {0, 1, 3, 36, 87};
  for (const PackedSequences& sequences :
       {PackedSequences{3, 29}, PackedSequences{87, 1},
        PackedSequences{4, 0, offsets.data()}}) {
    for (int channels : {7, 66, 320}) {
      Norm<float> by_index(87, channels);
      Norm<float> by_copy = by_index;
      for (int k = 0; k < sequences.count; ++k) {
        const int64_t head = sequences.begin(k), tail = sequences.end(k) - 1;
        by_copy.x.CopyRow(head, by_index.x, tail);
        by_copy.x.CopyRow(tail, by_index.x, head);
      }
      const Matrix<float> y = by_copy.Run(sequences, false, GetParam());
      EXPECT_TRUE(by_index.Run(sequences, true, GetParam()) == y);
      EXPECT_TRUE(by_index.x == by_copy.x);
    }
  }
}

TEST_P(LayerNormTest, LeavesXAloneWithoutSwap) {
  Norm<float> norm(51, 66);
  const Matrix<float> before = norm.x;
  norm.Run({1, 51}, false, GetParam());
  EXPECT_TRUE(norm.x == before);
}

TEST_P(LayerNormTest, PoisonStaysInItsToken) {
  for (float poison : {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity()}) {
    for (bool swap : {false, true}) {
      Norm<float> clean(27, 66), poisoned(27, 66);
      poisoned.x.at(17, 3) = poison;  // The last token of sequence 1 of 3.
      const int row = swap ? 9 : 17;
      const Matrix<float> y = clean.Run({3, 9}, swap, GetParam());
      const Matrix<float> z = poisoned.Run({3, 9}, swap, GetParam());
      for (int i = 0; i < 27; ++i) EXPECT_EQ(z.RowEquals(i, y, i), i != row);
      EXPECT_FALSE(z.RowIsFinite(row));
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels
