#include "kernels/sequence/token_mean_cuda.h"

#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/cuda/device_matrix.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

// Returns the means of the scalar loop. They are computed in float and then
// rounded to T. The kernel must give the same bits.
template <typename T>
Matrix<T> Reference(const Matrix<T>& x, const PackedSequences& sequences,
                    int margin, int padding) {
  const Matrix<float> in = ToFloats(x);
  Matrix<float> mean(sequences.count, x.columns());
  TokenMeanArgs<float> args{};
  args.channels = x.columns();
  args.x = in.data();
  args.x_stride = in.stride();
  args.margin = margin;
  args.mean = mean.data();
  args.mean_stride = mean.stride();
  args.sequences = sequences;
  TokenMeanScalar(args);
  return Rounded<T>(mean, padding);
}

template <typename T>
Matrix<T> Run(const Matrix<T>& x, const PackedSequences& sequences, int margin,
              int padding) {
  const DeviceMatrix<T> in(x);
  const DeviceMatrix<T> mean(Matrix<T>(sequences.count, x.columns(), padding));
  std::vector<int32_t> host_offsets;
  if (sequences.offsets != nullptr) {
    host_offsets.assign(sequences.offsets,
                        sequences.offsets + sequences.count + 1);
  }
  const DeviceArray<int32_t> offsets(host_offsets);
  TokenMeanArgs<T> args{};
  args.channels = x.columns();
  args.x = in.data();
  args.x_stride = in.stride();
  args.margin = margin;
  args.mean = mean.data();
  args.mean_stride = mean.stride();
  args.sequences = sequences;
  if (sequences.offsets != nullptr) args.sequences.offsets = offsets.data();
  EXPECT_TRUE(TokenMeanCuda(args, TestStream()).ok());
  EXPECT_TRUE(in.ToHost() == x);
  return mean.ToHost();
}

template <typename T>
Matrix<T> Tokens(int64_t tokens, int channels, int padding) {
  std::mt19937 random(1);
  Matrix<T> x(tokens, channels, padding);
  x.FillNormal(random, 0.5f, 1);
  return x;
}

template <typename T>
class TokenMeanCudaTest : public DeviceTest {};
TYPED_TEST_SUITE(TokenMeanCudaTest, ElementTypes);

TYPED_TEST(TokenMeanCudaTest, HasTheScalarLoopsBits) {
  const std::vector<int32_t> offsets = {0, 1, 66, 130};
  for (int channels : {1, 7, 66, 320}) {
    for (int padding : {8, 5}) {
      for (const PackedSequences& sequences :
           {PackedSequences{3, 1}, PackedSequences{2, 63},
            PackedSequences{1, 64}, PackedSequences{1, 65},
            PackedSequences{2, 196}, PackedSequences{3, 0, offsets.data()}}) {
        const Matrix<TypeParam> x = Tokens<TypeParam>(
            sequences.end(sequences.count - 1), channels, padding);
        EXPECT_TRUE(Run(x, sequences, 0, padding) ==
                    Reference(x, sequences, 0, padding));
      }
    }
  }
}

// Most sequences have more tokens than a block of threads adds at a time.
TYPED_TEST(TokenMeanCudaTest, TakesLongSequences) {
  for (int length : {1024, 1025, 2100}) {
    const Matrix<TypeParam> x = Tokens<TypeParam>(length, 24, 8);
    EXPECT_TRUE(Run(x, {1, length}, 0, 8) == Reference(x, {1, length}, 0, 8));
  }
}

TYPED_TEST(TokenMeanCudaTest, LeavesTheMarginOut) {
  const Matrix<TypeParam> x = Tokens<TypeParam>(51 * 3, 24, 8);
  for (int margin : {1, 25}) {
    EXPECT_TRUE(Run(x, {3, 51}, margin, 8) == Reference(x, {3, 51}, margin, 8));
  }
}

TYPED_TEST(TokenMeanCudaTest, FillsHeadsAndTailsInPlace) {
  constexpr int kLength = 51, kCount = 3, kChannels = 64;
  const Matrix<TypeParam> before =
      Tokens<TypeParam>(kCount * kLength, kChannels, 8);
  const DeviceMatrix<TypeParam> device(before);
  TokenMeanArgs<TypeParam> args{};
  args.channels = kChannels;
  args.x = device.data();
  args.x_stride = device.stride();
  args.margin = 1;
  args.mean = device.row(0);
  args.copy = device.row(kLength - 1);
  args.mean_stride = kLength * device.stride();
  args.sequences = {kCount, kLength};
  ASSERT_TRUE(TokenMeanCuda(args, TestStream()).ok());
  const Matrix<TypeParam> mean = Reference(before, {kCount, kLength}, 1, 8);
  Matrix<TypeParam> expected = before;
  for (int k = 0; k < kCount; ++k) {
    expected.CopyRow(k * kLength, mean, k);
    expected.CopyRow((k + 1) * kLength - 1, mean, k);
  }
  EXPECT_TRUE(device.ToHost() == expected);
}

TYPED_TEST(TokenMeanCudaTest, PoisonStaysInItsSequence) {
  const Matrix<TypeParam> x = Tokens<TypeParam>(3 * 9, 24, 8);
  const Matrix<TypeParam> mean = Run(x, {3, 9}, 0, 8);
  for (float poison : {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity()}) {
    for (int position : {9, 17}) {
      Matrix<TypeParam> poisoned = x;
      poisoned.at(position, 3) = static_cast<TypeParam>(poison);
      const Matrix<TypeParam> other = Run(poisoned, {3, 9}, 0, 8);
      EXPECT_TRUE(other.RowEquals(0, mean, 0));
      EXPECT_FALSE(other.RowIsFinite(1));
      EXPECT_TRUE(other.RowEquals(2, mean, 2));
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels
