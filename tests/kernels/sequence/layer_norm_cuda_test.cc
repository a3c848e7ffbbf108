#include "kernels/sequence/layer_norm_cuda.h"

#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/sequence/layer_norm.h"
#include "tests/kernels/cuda/device_matrix.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

constexpr double kTolerance = 2e-6;  // Relative to the largest output.

// Numbers of values between rows. With kWide, the kernel can access 16 bytes at
// a time, with kOdd only single values.
constexpr int kWide = 8, kOdd = 5;

template <typename X, typename Y>
struct Norm {
  Norm(int64_t tokens, int channels, int padding = kWide, float mean = 0.3f)
      : x(tokens, channels, padding), add(tokens, channels, padding) {
    std::mt19937 random(1);
    x.FillNormal(random, mean, 2);
    add.FillNormal(random, 0, 1);
    gamma = Normals(random, channels, 1, 0.3f);
    beta = Normals(random, channels, 0, 0.3f);
  }

  // The tokens [first, first + count) of each sequence. The kernel writes the
  // sum of x and `add` for these tokens to a separate array, not to x. Run()
  // copies this array to Kept::x.
  struct Kept {
    int first, count;
    Matrix<X> x;
  };

  // Runs the kernel and returns y. The kernel may change x. Pointers in
  // `sequences` must be host pointers.
  Matrix<Y> Run(const PackedSequences& sequences, bool swap,
                bool with_add = false, Kept* kept = nullptr) {
    const DeviceMatrix<X> device_x(x);
    const DeviceMatrix<Y> device_add(add);
    const DeviceMatrix<Y> y(Matrix<Y>(
        x.rows(), x.columns(), static_cast<int>(x.stride()) - x.columns()));
    const DeviceArray<float> device_gamma(gamma), device_beta(beta);
    std::vector<int32_t> host_offsets;
    if (sequences.offsets != nullptr) {
      host_offsets.assign(sequences.offsets,
                          sequences.offsets + sequences.count + 1);
    }
    const DeviceArray<int32_t> offsets(host_offsets);
    LayerNormCudaArgs<X, Y> args{};
    args.channels = x.columns();
    args.x = device_x.data();
    args.x_stride = device_x.stride();
    args.add = with_add ? device_add.data() : nullptr;
    args.add_stride = device_add.stride();
    args.y = y.data();
    args.y_stride = y.stride();
    args.gamma = device_gamma.data();
    args.beta = device_beta.data();
    args.eps = 1e-5f;
    args.swap = swap;
    args.sequences = sequences;
    if (sequences.offsets != nullptr) args.sequences.offsets = offsets.data();
    const DeviceMatrix<X> device_kept(Matrix<X>(
        kept == nullptr ? 0 : sequences.count * kept->count, x.columns(),
        /*padding=*/0));
    if (kept != nullptr) {
      args.kept = device_kept.data();
      args.kept_first = kept->first;
      args.kept_count = kept->count;
    }
    EXPECT_TRUE(LayerNormCuda(args, TestStream()).ok());
    if (kept != nullptr) kept->x = device_kept.ToHost();
    x = device_x.ToHost();
    return y.ToHost();
  }

  // Computes the normalisation of x by the scalar loop in fp32. Returns the
  // result, converted to double.
  Matrix<double> Reference() const {
    Matrix<float> in = ToFloats(x);
    Matrix<float> out(x.rows(), x.columns());
    LayerNormArgs<float> args{};
    args.channels = x.columns();
    args.x = in.data();
    args.x_stride = in.stride();
    args.y = out.data();
    args.y_stride = out.stride();
    args.gamma = gamma.data();
    args.beta = beta.data();
    args.eps = 1e-5f;
    args.sequences = {1, static_cast<int>(x.rows())};
    LayerNormScalar(args);
    return ToDouble(out);
  }

  // Returns x after the addition, as the kernel must leave it.
  Matrix<X> Sum() const {
    Matrix<X> sum = x;
    for (int64_t i = 0; i < x.rows(); ++i) {
      for (int c = 0; c < x.columns(); ++c) {
        sum.at(i, c) = static_cast<X>(static_cast<float>(x.at(i, c)) +
                                      static_cast<float>(add.at(i, c)));
      }
    }
    return sum;
  }

  Matrix<X> x;
  Matrix<Y> add;
  std::vector<float> gamma, beta;
};

// The Norm of a pair of types.
template <typename Pair>
using NormOf = Norm<typename Pair::first_type, typename Pair::second_type>;

template <typename Pair>
class LayerNormCudaTest : public DeviceTest {};
using Pairs =
    testing::Types<std::pair<float, float>, std::pair<float, BFloat16>,
                   std::pair<float, Float16>, std::pair<BFloat16, BFloat16>,
                   std::pair<Float16, Float16>>;
TYPED_TEST_SUITE(LayerNormCudaTest, Pairs);

TYPED_TEST(LayerNormCudaTest, AgreesWithTheScalarLoop) {
  for (int channels :
       {1, 2, 7, 8, 33, 66, 80, 128, 192, 320, 392, 640, 1024, 1568, 2048}) {
    for (int padding : {kWide, kOdd}) {
      NormOf<TypeParam> norm(9, channels, padding);
      const Matrix<double> expected = norm.Reference();
      ExpectClose(norm.Run({1, 9}, false), expected, kTolerance);
    }
  }
}

// The mean is much larger than the deviation. A variance that is computed as
// the mean of squares minus the squared mean would lose all precision.
TYPED_TEST(LayerNormCudaTest, KeepsTheVarianceBesideALargeMean) {
  NormOf<TypeParam> norm(8, 320, kWide, /*mean=*/100);
  const Matrix<double> expected = norm.Reference();
  ExpectClose(norm.Run({1, 8}, false), expected, 2e-5);
}

TYPED_TEST(LayerNormCudaTest, SwapByIndexEqualsSwapByCopy) {
  const std::vector<int32_t> offsets = {0, 0, 1, 3, 36, 36, 87};
  for (const PackedSequences& sequences :
       {PackedSequences{3, 29}, PackedSequences{87, 1},
        PackedSequences{6, 0, offsets.data()}}) {
    for (int channels : {7, 66, 320}) {
      for (bool with_add : {false, true}) {
        NormOf<TypeParam> by_index(87, channels);
        NormOf<TypeParam> by_copy = by_index;
        for (int k = 0; k < sequences.count; ++k) {
          const int64_t head = sequences.begin(k), tail = sequences.end(k) - 1;
          if (tail < head) continue;
          by_copy.x.CopyRow(head, by_index.x, tail);
          by_copy.x.CopyRow(tail, by_index.x, head);
          by_copy.add.CopyRow(head, by_index.add, tail);
          by_copy.add.CopyRow(tail, by_index.add, head);
        }
        const auto y = by_copy.Run(sequences, false, with_add);
        EXPECT_TRUE(by_index.Run(sequences, true, with_add) == y);
        EXPECT_TRUE(by_index.x == by_copy.x);
      }
    }
  }
}

TYPED_TEST(LayerNormCudaTest, AddsToXBefore) {
  for (int channels : {7, 320}) {
    NormOf<TypeParam> norm(9, channels);
    NormOf<TypeParam> sum = norm;
    sum.x = norm.Sum();
    const auto y = sum.Run({1, 9}, false);
    EXPECT_TRUE(norm.Run({1, 9}, false, /*with_add=*/true) == y);
    EXPECT_TRUE(norm.x == sum.x);
  }
}

TYPED_TEST(LayerNormCudaTest, KeepsSomeTokensOfEachSequence) {
  constexpr int kSequences = 3, kLength = 7;
  for (int channels : {7, 66, 320}) {
    for (bool with_add : {false, true}) {
      for (const auto& [first, count] :
           std::vector<std::pair<int, int>>{{0, 7}, {0, 3}, {1, 5}, {6, 1}}) {
        NormOf<TypeParam> norm(kSequences * kLength, channels);
        NormOf<TypeParam> whole = norm;
        const auto before = norm.x;
        typename NormOf<TypeParam>::Kept kept{first, count, norm.x};
        const auto y = norm.Run({kSequences, kLength}, false, with_add, &kept);
        EXPECT_TRUE(whole.Run({kSequences, kLength}, false, with_add) == y);
        EXPECT_TRUE(norm.x == before);
        for (int row = 0; row < kSequences * count; ++row) {
          EXPECT_TRUE(kept.x.RowEquals(
              row, whole.x, row / count * kLength + first + row % count))
              << row;
        }
      }
    }
  }
}

// With the padding kWide, a thread may load 8 values at a time, and a warp then
// normalises two rows. With kLesser, a thread loads fewer values, and a warp
// normalises one row. Both must give the same bits.
TYPED_TEST(LayerNormCudaTest, AnyLoadGivesTheSameBits) {
  constexpr int kLesser = 4;
  for (int channels : {8, 80, 128, 192, 320, 640, 1024}) {
    for (bool with_add : {false, true}) {
      NormOf<TypeParam> wide(7, channels, kWide), lesser(7, channels, kLesser);
      const auto y = wide.Run({1, 7}, false, with_add);
      const auto z = lesser.Run({1, 7}, false, with_add);
      for (int i = 0; i < 7; ++i) EXPECT_TRUE(y.RowEquals(i, z, i)) << channels;
    }
  }
}

TYPED_TEST(LayerNormCudaTest, LeavesXAloneWithoutSwap) {
  NormOf<TypeParam> norm(51, 66);
  const auto before = norm.x;
  norm.Run({1, 51}, false);
  EXPECT_TRUE(norm.x == before);
}

// A call for the sequences [1, 3) of 4 may write only the rows of these
// sequences. It must write the same values as a call for all sequences.
TYPED_TEST(LayerNormCudaTest, KeepsToItsSequences) {
  for (bool swap : {false, true}) {
    NormOf<TypeParam> whole(36, 64), some(36, 64);
    const auto x = some.x;
    const auto y = whole.Run({4, 9}, swap);
    const auto z = some.Run(PackedSequences{4, 9}.Slice(1, 3), swap);
    for (int i = 0; i < 36; ++i) {
      const bool inside = i / 9 == 1 || i / 9 == 2;
      EXPECT_EQ(z.RowEquals(i, y, i), inside) << i;
      EXPECT_TRUE(some.x.RowEquals(i, inside ? whole.x : x, i)) << i;
    }
  }
}

TYPED_TEST(LayerNormCudaTest, PoisonStaysInItsToken) {
  using X = typename TypeParam::first_type;
  for (float poison : {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity()}) {
    for (bool swap : {false, true}) {
      NormOf<TypeParam> clean(27, 66), poisoned(27, 66);
      // Token 17 is the last token of the second of three sequences.
      poisoned.x.at(17, 3) = static_cast<X>(poison);
      const int row = swap ? 9 : 17;
      const auto y = clean.Run({3, 9}, swap);
      const auto z = poisoned.Run({3, 9}, swap);
      for (int i = 0; i < 27; ++i) EXPECT_EQ(z.RowEquals(i, y, i), i != row);
      EXPECT_FALSE(z.RowIsFinite(row));
    }
  }
}

TYPED_TEST(LayerNormCudaTest, RefusesMoreChannelsThanRegistersHold) {
  LayerNormCudaArgs<typename TypeParam::first_type,
                    typename TypeParam::second_type>
      args{};
  args.channels = kLayerNormCudaChannels + 1;
  args.sequences = {1, 1};
  EXPECT_EQ(LayerNormCuda(args, TestStream()).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sfmamba::kernels
