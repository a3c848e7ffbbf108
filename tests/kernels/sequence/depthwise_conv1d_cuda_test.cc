#include "kernels/sequence/depthwise_conv1d_cuda.h"

#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/cuda/device_matrix.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kTolerance = 2e-6;  // Relative to the largest output.

// Numbers of values between rows. With kWide, the kernel can access 16 bytes at
// a time, with kPairs two values, and with kOdd only single values.
constexpr int kWide = 8, kPairs = 6, kOdd = 5;

// Returns rows [begin, end) of `from`.
template <typename T>
Matrix<T> Rows(const Matrix<T>& from, int64_t begin, int64_t end) {
  Matrix<T> to(end - begin, from.columns(),
               static_cast<int>(from.stride()) - from.columns());
  for (int64_t i = begin; i < end; ++i) to.CopyRow(i - begin, from, i);
  return to;
}

template <typename T>
struct Convolution {
  Convolution(int64_t tokens, int channels, int taps, int padding = kWide)
      : taps(taps), left(taps == 3 ? 1 : 3), x(tokens, channels, padding) {
    std::mt19937 random(1);
    x.FillNormal(random, 0, 2);
    weight = Normals(random, taps * channels, 0, 1);
    bias = Normals(random, channels, 0, 1);
  }

  // Returns the kernel's result. The offsets of `sequences` must be on the
  // host.
  Matrix<T> Run(const PackedSequences& sequences) const {
    const Arrays arrays(*this, sequences);
    const DepthwiseConv1dArgs<T> args = arrays.Args(*this);
    EXPECT_TRUE(DepthwiseConv1dCuda(&args, 1, TestStream()).ok());
    return arrays.y.ToHost();
  }

  // Computes the convolution by the scalar loop in fp32. Returns the result,
  // converted to double.
  Matrix<double> Reference(const PackedSequences& sequences) const {
    const Matrix<float> in = ToFloats(x);
    Matrix<float> out(x.rows(), x.columns());
    DepthwiseConv1dArgs<float> args{};
    args.channels = x.columns();
    args.taps = taps;
    args.left = left;
    args.x = in.data();
    args.x_stride = in.stride();
    args.y = out.data();
    args.y_stride = out.stride();
    args.weight = weight.data();
    args.bias = with_bias ? bias.data() : nullptr;
    args.silu = silu;
    args.sequences = sequences;
    DepthwiseConv1dScalar(args);
    return ToDouble(out);
  }

  // A convolution's arrays on the device.
  struct Arrays {
    Arrays(const Convolution& convolution, const PackedSequences& on_host)
        : x(convolution.x),
          y(Matrix<T>(x.ToHost().rows(), convolution.x.columns(),
                      static_cast<int>(convolution.x.stride()) -
                          convolution.x.columns())),
          weight(convolution.weight),
          bias(convolution.bias),
          offsets(
              on_host.offsets == nullptr
                  ? std::vector<int32_t>()
                  : std::vector<int32_t>(on_host.offsets,
                                         on_host.offsets + on_host.count + 1)),
          sequences(on_host) {
      if (on_host.offsets != nullptr) sequences.offsets = offsets.data();
    }

    DepthwiseConv1dArgs<T> Args(const Convolution& convolution) const {
      DepthwiseConv1dArgs<T> args{};
      args.channels = convolution.x.columns();
      args.taps = convolution.taps;
      args.left = convolution.left;
      args.x = x.data();
      args.x_stride = x.stride();
      args.y = y.data();
      args.y_stride = y.stride();
      args.weight = weight.data();
      args.bias = convolution.with_bias ? bias.data() : nullptr;
      args.silu = convolution.silu;
      args.sequences = sequences;
      return args;
    }

    DeviceMatrix<T> x, y;
    DeviceArray<float> weight, bias;
    DeviceArray<int32_t> offsets;
    PackedSequences sequences;
  };

  int taps, left;
  bool silu = true, with_bias = false;
  Matrix<T> x;
  std::vector<float> weight, bias;
};

template <typename T>
class DepthwiseConv1dCudaTest : public DeviceTest {};
TYPED_TEST_SUITE(DepthwiseConv1dCudaTest, ElementTypes);

TYPED_TEST(DepthwiseConv1dCudaTest, AgreesWithTheScalarLoop) {
  for (int length : {1, 2, 3, 31, 33, 51}) {
    for (int channels : {1, 7, 8, 66, 160}) {
      for (int padding : {kWide, kPairs, kOdd}) {
        const PackedSequences sequences{3, length};
        Convolution<TypeParam> centred(3 * length, channels, 3, padding);
        ExpectClose(centred.Run(sequences), centred.Reference(sequences),
                    kTolerance);
        Convolution<TypeParam> causal(3 * length, channels, 4, padding);
        causal.with_bias = true;
        ExpectClose(causal.Run(sequences), causal.Reference(sequences),
                    kTolerance);
        causal.silu = false;
        ExpectClose(causal.Run(sequences), causal.Reference(sequences),
                    kTolerance);
      }
    }
  }
}

// A row has more vectors of channels than a block has threads.
TYPED_TEST(DepthwiseConv1dCudaTest, TakesManyChannels) {
  const Convolution<TypeParam> convolution(9, 2056, 3);
  ExpectClose(convolution.Run({3, 3}), convolution.Reference({3, 3}),
              kTolerance);
}

TYPED_TEST(DepthwiseConv1dCudaTest, WidthOfAccessesChangesNoBit) {
  for (int taps : {3, 4}) {
    Matrix<float> results[3] = {{1, 1}, {1, 1}, {1, 1}};
    for (int p = 0; p < 3; ++p) {
      const int paddings[] = {kWide, kPairs, kOdd};
      const Convolution<TypeParam> convolution(99, 64, taps, paddings[p]);
      results[p] = ToFloats(convolution.Run({3, 33}));
    }
    EXPECT_TRUE(results[1] == results[0]);
    EXPECT_TRUE(results[2] == results[0]);
  }
}

TYPED_TEST(DepthwiseConv1dCudaTest, TwoPartsEqualTwoCalls) {
  Convolution<TypeParam> first(99, 64, 3), second(99, 24, 3);
  second.with_bias = true;
  const typename Convolution<TypeParam>::Arrays a(first, {3, 33}),
      b(second, {3, 33});
  const DepthwiseConv1dArgs<TypeParam> parts[] = {a.Args(first),
                                                  b.Args(second)};
  ASSERT_TRUE(DepthwiseConv1dCuda(parts, 2, TestStream()).ok());
  EXPECT_TRUE(a.y.ToHost() == first.Run({3, 33}));
  EXPECT_TRUE(b.y.ToHost() == second.Run({3, 33}));
}

TYPED_TEST(DepthwiseConv1dCudaTest, RaggedAndFoldedEqualOneCallPerSequence) {
  const std::vector<int32_t> offsets = {0, 0, 1, 34, 36, 36, 39, 237, 268, 268};
  for (int taps : {3, 4}) {
    const Convolution<TypeParam> convolution(268, 66, taps);
    for (const PackedSequences& sequences :
         {PackedSequences{9, 0, offsets.data()}, PackedSequences{4, 67},
          PackedSequences{268, 1}}) {
      const Matrix<TypeParam> together = convolution.Run(sequences);
      for (int k = 0; k < sequences.count; ++k) {
        const int64_t begin = sequences.begin(k), end = sequences.end(k);
        if (begin == end) continue;
        Convolution<TypeParam> one = convolution;
        one.x = Rows(convolution.x, begin, end);
        const int length = static_cast<int>(end - begin);
        ASSERT_TRUE(one.Run({1, length}) == Rows(together, begin, end))
            << "sequence " << k;
      }
    }
  }
}

// Each thread computes a run of tokens. The runs are shorter if a call has few
// sequences than if it has many. This must not change the results.
TYPED_TEST(DepthwiseConv1dCudaTest, LengthOfRunsChangesNoBit) {
  // Together, these are more than 16 x 65536 tokens. The runs therefore have
  // their maximum length.
  constexpr int kLength = 51, kMany = 21000;
  const Convolution<TypeParam> many(kMany * kLength, 1, 3, /*padding=*/0);
  const Matrix<TypeParam> together = many.Run({kMany, kLength});
  Convolution<TypeParam> one(kLength, 1, 3, /*padding=*/0);
  one.weight = many.weight;
  for (int k : {0, 7, kMany - 1}) {
    one.x = Rows(many.x, k * kLength, (k + 1) * kLength);
    EXPECT_TRUE(one.Run({1, kLength}) ==
                Rows(together, k * kLength, (k + 1) * kLength));
  }
}

// The kernel may read and write only sequences [1, 3) of a tensor.
TYPED_TEST(DepthwiseConv1dCudaTest, KeepsToItsSequences) {
  constexpr int kLength = 9;
  for (int taps : {3, 4}) {
    Convolution<TypeParam> convolution(4 * kLength, 24, taps);
    const Matrix<TypeParam> whole = convolution.Run({4, kLength});
    const Matrix<TypeParam> some =
        convolution.Run(PackedSequences{4, kLength}.Slice(1, 3));
    const Matrix<TypeParam> untouched(4 * kLength, 24, kWide);
    for (int i = 0; i < 4 * kLength; ++i) {
      const bool inside = i / kLength == 1 || i / kLength == 2;
      EXPECT_TRUE(some.RowEquals(i, inside ? whole : untouched, i)) << i;
    }
  }
}

TYPED_TEST(DepthwiseConv1dCudaTest, PoisonStaysInItsSequence) {
  constexpr int kLength = 9;
  for (int taps : {3, 4}) {
    const Convolution<TypeParam> convolution(3 * kLength, 24, taps);
    const Matrix<TypeParam> y = convolution.Run({3, kLength});
    for (float poison : {kNan, kInf, -kInf}) {
      for (int position : {0, kLength / 2, kLength - 1}) {
        Convolution<TypeParam> poisoned = convolution;
        poisoned.x.at(kLength + position, 3) = static_cast<TypeParam>(poison);
        const Matrix<TypeParam> z = poisoned.Run({3, kLength});
        for (int i = 0; i < 3 * kLength; ++i) {
          if (i / kLength == 1) continue;
          ASSERT_TRUE(z.RowEquals(i, y, i)) << "row " << i;
        }
        EXPECT_FALSE(z.RowIsFinite(kLength + position));
      }
    }
  }
}

TYPED_TEST(DepthwiseConv1dCudaTest, TwoRunsAreEqual) {
  const Convolution<TypeParam> convolution(198, 160, 3);
  EXPECT_TRUE(convolution.Run({6, 33}) == convolution.Run({6, 33}));
}

TYPED_TEST(DepthwiseConv1dCudaTest, RefusesOtherTaps) {
  const Convolution<TypeParam> convolution(8, 8, 5);
  const typename Convolution<TypeParam>::Arrays arrays(convolution, {1, 8});
  const DepthwiseConv1dArgs<TypeParam> args = arrays.Args(convolution);
  EXPECT_EQ(DepthwiseConv1dCuda(&args, 1, TestStream()).code(),
            absl::StatusCode::kInvalidArgument);
}

// For some of these values, the kernel's Exp2() or Reciprocal() overflows or
// underflows.
TEST(DepthwiseConv1dCuda, SiluHandlesLargeValues) {
  if (!HasDevice()) GTEST_SKIP() << "no GPU";
  Convolution<float> convolution(8, 1, 3);
  convolution.weight = {0, 1, 0};
  const float values[] = {-1e30f, -200, -88, -20, 20, 88, 200, 1e30f};
  for (int i = 0; i < 8; ++i) convolution.x.at(i, 0) = values[i];
  const Matrix<float> y = convolution.Run({1, 8});
  for (int i = 0; i < 8; ++i) {
    const double want = values[i] / (1 + std::exp(-double{values[i]}));
    EXPECT_NEAR(y.at(i, 0), want, 1e-6 * std::max(0.0, want) + 1e-7) << i;
  }
}

}  // namespace
}  // namespace sfmamba::kernels
