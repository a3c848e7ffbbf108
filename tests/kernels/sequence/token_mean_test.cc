#include "kernels/sequence/token_mean.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

class TokenMeanTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isa, TokenMeanTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

template <typename T>
void ExpectAgreement(CpuIsa isa, const PackedSequences& sequences,
                     int channels) {
  std::mt19937 random(1);
  Matrix<T> x(sequences.end(sequences.count - 1), channels);
  x.FillNormal(random, 0.5f, 1);
  Matrix<T> mean(sequences.count, channels);
  TokenMeanArgs<T> args{};
  args.channels = channels;
  args.x = x.data();
  args.x_stride = x.stride();
  args.mean = mean.data();
  args.mean_stride = mean.stride();
  args.sequences = sequences;
  TokenMeanCpu(args, isa);
  EXPECT_TRUE(mean.GuardsIntact());

  Matrix<double> expected(sequences.count, channels);
  for (int k = 0; k < sequences.count; ++k) {
    for (int c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t i = sequences.begin(k); i < sequences.end(k); ++i) {
        sum += static_cast<float>(x.at(i, c));
      }
      expected.at(k, c) = sum / (sequences.end(k) - sequences.begin(k));
    }
  }
  ExpectClose(mean, expected, 1e-6);
}

TEST_P(TokenMeanTest, AgreesWithFp64) {
  const std::vector<int32_t> offsets = {0, 1, 66, 130};
  for (int channels : {1, 7, 66, 320}) {
    for (const PackedSequences& sequences :
         {PackedSequences{3, 1}, PackedSequences{2, 196},
          PackedSequences{3, 0, offsets.data()}}) {
      ExpectAgreement<float>(GetParam(), sequences, channels);
      ExpectAgreement<BFloat16>(GetParam(), sequences, channels);
    }
  }
  ExpectAgreement<float>(GetParam(), {1, 7056}, 20);
}

TEST_P(TokenMeanTest, FillsHeadsAndTailsInPlace) {
  constexpr int kLength = 51, kCount = 3, kChannels = 66;
  std::mt19937 random(1);
  Matrix<float> x(kCount * kLength, kChannels);
  x.FillNormal(random, 0, 1);
  const Matrix<float> before = x;
  TokenMeanArgs<float> args{};
  args.channels = kChannels;
  args.x = x.data();
  args.x_stride = x.stride();
  args.margin = 1;
  args.mean = &x.at(0, 0);
  args.copy = &x.at(kLength - 1, 0);
  args.mean_stride = kLength * x.stride();
  args.sequences = {kCount, kLength};
  TokenMeanCpu(args, GetParam());
  EXPECT_TRUE(x.GuardsIntact());
  for (int k = 0; k < kCount; ++k) {
    const int head = k * kLength, tail = head + kLength - 1;
    EXPECT_TRUE(x.RowEquals(head, x, tail));
    for (int i = head + 1; i < tail; ++i)
      EXPECT_TRUE(x.RowEquals(i, before, i));
    for (int c = 0; c < kChannels; ++c) {
      double sum = 0;
      for (int i = head + 1; i < tail; ++i) sum += before.at(i, c);
      EXPECT_NEAR(x.at(head, c), sum / (kLength - 2), 1e-6);
    }
  }
}

TEST_P(TokenMeanTest, EqualsTheScalarLoopBitForBit) {
  std::mt19937 random(1);
  Matrix<float> x(200, 66), scalar(1, 66), mean(1, 66);
  x.FillNormal(random, 0, 1);
  TokenMeanArgs<float> args{};
  args.channels = 66;
  args.x = x.data();
  args.x_stride = x.stride();
  args.mean = scalar.data();
  args.mean_stride = scalar.stride();
  args.sequences = {1, 200};
  TokenMeanScalar(args);
  args.mean = mean.data();
  TokenMeanCpu(args, GetParam());
  EXPECT_TRUE(mean == scalar);
}

}  // namespace
}  // namespace sfmamba::kernels
