#include "kernels/sequence/depthwise_conv1d.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kTolerance = 2e-6;  // Relative to the largest output.

template <typename T>
struct Convolution {
  Convolution(int64_t tokens, int channels, int taps, int left)
      : taps(taps), left(left), x(tokens, channels) {
    std::mt19937 random(1);
    x.FillNormal(random, 0, 2);
    weight = Normals(random, taps * channels, 0, 1);
    bias = Normals(random, channels, 0, 1);
  }

  Matrix<T> Run(const PackedSequences& sequences, CpuIsa isa) const {
    Matrix<T> y(x.rows(), x.columns());
    RunInto(sequences, isa, &y);
    EXPECT_TRUE(y.GuardsIntact());
    return y;
  }

  void RunInto(const PackedSequences& sequences, CpuIsa isa,
               Matrix<T>* y) const {
    DepthwiseConv1dArgs<T> args{};
    args.channels = x.columns();
    args.taps = taps;
    args.left = left;
    args.x = x.data();
    args.x_stride = x.stride();
    args.y = y->data();
    args.y_stride = y->stride();
    args.weight = weight.data();
    args.bias = with_bias ? bias.data() : nullptr;
    args.silu = silu;
    args.sequences = sequences;
    DepthwiseConv1dCpu(args, isa);
  }

  Matrix<double> Reference(const PackedSequences& sequences) const {
    Matrix<double> y(x.rows(), x.columns());
    for (int k = 0; k < sequences.count; ++k) {
      const int64_t begin = sequences.begin(k), end = sequences.end(k);
      for (int64_t i = begin; i < end; ++i) {
        for (int c = 0; c < x.columns(); ++c) {
          double v = with_bias ? bias[c] : 0.0;
          for (int64_t j = 0; j < taps; ++j) {
            const int64_t from = i + j - left;
            if (from < begin || from >= end) continue;
            v += double{weight[j * x.columns() + c]} *
                 static_cast<float>(x.at(from, c));
          }
          y.at(i, c) = silu ? v / (1 + std::exp(-v)) : v;
        }
      }
    }
    return y;
  }

  int taps, left;
  bool silu = true, with_bias = false;
  Matrix<T> x;
  std::vector<float> weight, bias;
};

class DepthwiseConv1dTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isa, DepthwiseConv1dTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

TEST_P(DepthwiseConv1dTest, AgreesWithFp64) {
  for (int length : {1, 2, 3, 31, 51, 198, 2049}) {
    for (int channels : {1, 7, 8, 66, 160}) {
      for (int count : {1, 3}) {
        const PackedSequences sequences{count, length};
        Convolution<float> centred(count * length, channels, 3, 1);
        ExpectClose(centred.Run(sequences, GetParam()),
                    centred.Reference(sequences), kTolerance);
        Convolution<float> causal(count * length, channels, 4, 3);
        causal.with_bias = true;
        ExpectClose(causal.Run(sequences, GetParam()),
                    causal.Reference(sequences), kTolerance);
      }
    }
  }
}

TEST_P(DepthwiseConv1dTest, AgreesWithFp64ForOtherTapsAndWithoutSilu) {
  for (int taps : {1, 2, 5, 7}) {
    for (int left = 0; left < taps; ++left) {
      Convolution<float> convolution(40, 20, taps, left);
      convolution.silu = false;
      for (const PackedSequences& sequences :
           {PackedSequences{1, 40}, PackedSequences{10, 4}}) {
        ExpectClose(convolution.Run(sequences, GetParam()),
                    convolution.Reference(sequences), kTolerance);
      }
    }
  }
}

TEST_P(DepthwiseConv1dTest, AgreesWithFp64InBFloat16) {
  for (int channels : {7, 160}) {
    const Convolution<BFloat16> convolution(99, channels, 3, 1);
    const PackedSequences sequences{3, 33};
    ExpectClose(convolution.Run(sequences, GetParam()),
                convolution.Reference(sequences), kTolerance);
  }
}

TEST_P(DepthwiseConv1dTest, SiluHandlesLargeValues) {
  Convolution<float> convolution(8, 1, 1, 0);
  convolution.weight = {1};
  const float values[] = {-1e30f, -200, -88, -20, 20, 88, 200, 1e30f};
  for (int i = 0; i < 8; ++i) convolution.x.at(i, 0) = values[i];
  const Matrix<float> y = convolution.Run({1, 8}, GetParam());
  for (int i = 0; i < 8; ++i) {
    const double want = values[i] / (1 + std::exp(-double{values[i]}));
    EXPECT_NEAR(y.at(i, 0), want, 1e-6 * std::max(0.0, want) + 1e-7) << i;
  }
}

TEST_P(DepthwiseConv1dTest, RaggedAndFoldedEqualOneCallPerSequence) {
  const std::vector<int32_t> offsets = {0, 1, 34, 36, 39, 237, 268};
  for (int taps : {3, 4}) {
    const Convolution<float> convolution(268, 66, taps, taps == 3 ? 1 : 3);
    const PackedSequences ragged{6, 0, offsets.data()};
    Matrix<float> apart(268, 66);
    for (int k = 0; k < 6; ++k) {
      convolution.RunInto(ragged.Slice(k, k + 1), GetParam(), &apart);
    }
    EXPECT_TRUE(convolution.Run(ragged, GetParam()) == apart);

    const PackedSequences equal{4, 67};
    Matrix<float> folded(268, 66);
    convolution.RunInto(equal.Slice(0, 2), GetParam(), &folded);
    convolution.RunInto(equal.Slice(2, 4), GetParam(), &folded);
    EXPECT_TRUE(convolution.Run(equal, GetParam()) == folded);
  }
}

TEST_P(DepthwiseConv1dTest, PoisonStaysInItsSequence) {
  constexpr int kLength = 9;
  for (int taps : {3, 4}) {
    const Convolution<float> convolution(3 * kLength, 20, taps,
                                         taps == 3 ? 1 : 3);
    const Matrix<float> y = convolution.Run({3, kLength}, GetParam());
    for (float poison : {kNan, kInf, -kInf}) {
      for (int position : {0, kLength / 2, kLength - 1}) {
        Convolution<float> poisoned = convolution;
        poisoned.x.at(kLength + position, 3) = poison;
        const Matrix<float> z = poisoned.Run({3, kLength}, GetParam());
        for (int i = 0; i < 3 * kLength; ++i) {
          if (i / kLength == 1) continue;
          ASSERT_TRUE(z.RowEquals(i, y, i)) << "row " << i;
        }
        EXPECT_FALSE(z.RowIsFinite(kLength + position));
      }
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels
