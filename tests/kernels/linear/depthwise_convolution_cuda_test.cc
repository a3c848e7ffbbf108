#include "kernels/linear/depthwise_convolution_cuda.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/linear/depthwise_convolution.h"
#include "tests/kernels/cuda/device_matrix.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

constexpr double kTolerance = 2e-6;  // Relative to the largest output.
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Random maps, stored as [count * height * width, channels], and random
// weights.
template <typename T>
struct Problem {
  Problem(int count, int height, int width, int channels, int kernel,
          int stride)
      : count(count),
        height(height),
        width(width),
        kernel(kernel),
        stride(stride),
        x(int64_t{count} * height * width, channels, /*padding=*/0) {
    std::mt19937 random(1);
    x.FillNormal(random, 0.2f, 1);
    weight = Normals(random, kernel * kernel * channels, 0, 1);
    bias = Normals(random, channels, 0, 1);
  }

  int64_t OutputPixels() const {
    return int64_t{count} * ((height + stride - 1) / stride) *
           ((width + stride - 1) / stride);
  }

  DepthwiseConvolutionCudaArgs<T> Args() const {
    DepthwiseConvolutionCudaArgs<T> args{};
    args.count = count;
    args.height = height;
    args.width = width;
    args.channels = x.columns();
    args.kernel = kernel;
    args.stride = stride;
    args.activation = activation;
    return args;
  }

  // Runs the kernel on the device. Expects that no other memory changes.
  Matrix<T> Run() const {
    const DeviceMatrix<T> device_x(x);
    const DeviceMatrix<T> y(Matrix<T>(OutputPixels(), x.columns(), 0));
    const DeviceArray<float> device_weight(weight), device_bias(bias);
    DepthwiseConvolutionCudaArgs<T> args = Args();
    args.x = device_x.data();
    args.weight = device_weight.data();
    args.bias = with_bias ? device_bias.data() : nullptr;
    args.y = y.data();
    const absl::Status status = DepthwiseConvolutionCuda(args, TestStream());
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(device_x.ToHost() == x);
    return y.ToHost();
  }

  // Computes the convolution by the scalar loop in fp32. Returns the result,
  // converted to double.
  Matrix<double> Reference() const {
    const Matrix<float> in = Rounded<float>(ToFloats(x), /*padding=*/0);
    Matrix<float> out(OutputPixels(), x.columns(), /*padding=*/0);
    DepthwiseConvolutionArgs args{};
    args.count = count;
    args.height = height;
    args.width = width;
    args.channels = x.columns();
    args.kernel = kernel;
    args.stride = stride;
    args.x = in.data();
    args.weight = weight.data();
    args.bias = with_bias ? bias.data() : nullptr;
    args.low = activation == CudaActivation::kNone ? -kInfinity : 0;
    args.high = activation == CudaActivation::kRelu6 ? 6 : kInfinity;
    args.y = out.data();
    DepthwiseConvolutionScalar(args, 0, DepthwiseConvolutionRows(args));
    return ToDouble(out);
  }

  void ExpectAgreement() const {
    SCOPED_TRACE(testing::Message()
                 << count << " of " << height << "x" << width << ", "
                 << x.columns() << " channels, kernel " << kernel << ", stride "
                 << stride);
    ExpectClose(Run(), Reference(), kTolerance);
  }

  int count, height, width, kernel, stride;
  CudaActivation activation = CudaActivation::kNone;
  bool with_bias = true;
  Matrix<T> x;
  std::vector<float> weight;  // [kernel, kernel, channels]
  std::vector<float> bias;
};

template <typename T>
class DepthwiseConvolutionCudaTest : public DeviceTest {};
TYPED_TEST_SUITE(DepthwiseConvolutionCudaTest, ElementTypes);

TYPED_TEST(DepthwiseConvolutionCudaTest, AgreesWithTheScalarLoop) {
  for (const auto& [height, width] :
       {std::pair{1, 1}, {2, 1}, {7, 7}, {3, 13}, {14, 6}}) {
    for (const int kernel : {3, 5, 7}) {
      for (const int stride : {1, 2}) {
        for (const int channels : {1, 5, 24}) {
          Problem<TypeParam>(2, height, width, channels, kernel, stride)
              .ExpectAgreement();
        }
      }
    }
  }
}

// The maps have several tiles in each direction, complete and partial ones.
TYPED_TEST(DepthwiseConvolutionCudaTest, TakesManyTilesAndChannels) {
  Problem<TypeParam>(2, 19, 37, 132, 3, 1).ExpectAgreement();
  Problem<TypeParam>(1, 39, 35, 35, 5, 2).ExpectAgreement();
  Problem<TypeParam>(1, 2, 5, 1028, 3, 1).ExpectAgreement();
}

// There are more maps than 65535, the maximum of gridDim.z.
TYPED_TEST(DepthwiseConvolutionCudaTest, TakesManyMaps) {
  Problem<TypeParam>(65537, 1, 1, 1, 3, 2).ExpectAgreement();
}

TYPED_TEST(DepthwiseConvolutionCudaTest, AppliesBiasAndActivation) {
  Problem<TypeParam> problem(1, 9, 15, 20, 3, 1);
  for (const CudaActivation activation :
       {CudaActivation::kNone, CudaActivation::kRelu, CudaActivation::kRelu6}) {
    for (const bool with_bias : {false, true}) {
      problem.activation = activation;
      problem.with_bias = with_bias;
      problem.ExpectAgreement();
    }
  }
}

// With 8 channels, the kernel accesses several channels at a time. With 7
// channels, it accesses them one by one. Both must give the same bits.
TYPED_TEST(DepthwiseConvolutionCudaTest, WidthOfAccessesChangesNoBit) {
  const Problem<TypeParam> wide(1, 6, 9, 8, 5, 1);
  Problem<TypeParam> narrow(1, 6, 9, 7, 5, 1);
  for (int64_t i = 0; i < narrow.x.rows(); ++i) {
    for (int c = 0; c < 7; ++c) narrow.x.at(i, c) = wide.x.at(i, c);
  }
  for (int c = 0; c < 7; ++c) {
    narrow.bias[c] = wide.bias[c];
    for (int t = 0; t < 25; ++t) {
      narrow.weight[t * 7 + c] = wide.weight[t * 8 + c];
    }
  }
  const Matrix<TypeParam> expected = wide.Run(), actual = narrow.Run();
  for (int64_t i = 0; i < actual.rows(); ++i) {
    for (int c = 0; c < 7; ++c) {
      ASSERT_EQ(static_cast<float>(actual.at(i, c)),
                static_cast<float>(expected.at(i, c)));
    }
  }
}

// Each array in turn begins one value after an aligned address.
TYPED_TEST(DepthwiseConvolutionCudaTest, AlignmentOfArraysChangesNoBit) {
  const Problem<TypeParam> problem(2, 5, 9, 8, 3, 2);
  const Matrix<TypeParam> expected = problem.Run();
  const size_t inputs = problem.x.rows() * problem.x.columns();
  const size_t outputs = expected.rows() * expected.columns();
  for (int unaligned = 0; unaligned < 4; ++unaligned) {
    const auto off = [&](int array) { return array == unaligned ? 1 : 0; };
    const auto placed = [](auto values, int off) {
      values.insert(values.begin(), off,
                    typename decltype(values)::value_type());
      return values;
    };
    const DeviceArray<TypeParam> x(placed(
        std::vector<TypeParam>(problem.x.data(), problem.x.data() + inputs),
        off(0)));
    const DeviceArray<float> weight(placed(problem.weight, off(1)));
    const DeviceArray<float> bias(placed(problem.bias, off(2)));
    const DeviceArray<TypeParam> y(outputs + off(3));
    DepthwiseConvolutionCudaArgs<TypeParam> args = problem.Args();
    args.x = x.data() + off(0);
    args.weight = weight.data() + off(1);
    args.bias = bias.data() + off(2);
    args.y = y.data() + off(3);
    ASSERT_TRUE(DepthwiseConvolutionCuda(args, TestStream()).ok());
    EXPECT_TRUE(y.GuardsIntact());
    const std::vector<TypeParam> got = y.ToHost();
    EXPECT_EQ(std::memcmp(got.data() + off(3), expected.data(),
                          outputs * sizeof(TypeParam)),
              0)
        << unaligned;
  }
}

TYPED_TEST(DepthwiseConvolutionCudaTest, AMapHasTheSameBitsInAnyBatch) {
  constexpr int kCount = 5, kHeight = 7, kWidth = 10;
  for (const int stride : {1, 2}) {
    const Problem<TypeParam> many(kCount, kHeight, kWidth, 12, 5, stride);
    const Matrix<TypeParam> together = many.Run();
    Problem<TypeParam> one(1, kHeight, kWidth, 12, 5, stride);
    one.weight = many.weight;
    one.bias = many.bias;
    for (int k = 0; k < kCount; ++k) {
      for (int i = 0; i < kHeight * kWidth; ++i) {
        one.x.CopyRow(i, many.x, k * kHeight * kWidth + i);
      }
      const Matrix<TypeParam> alone = one.Run();
      for (int64_t i = 0; i < alone.rows(); ++i) {
        ASSERT_TRUE(alone.RowEquals(i, together, k * alone.rows() + i));
      }
    }
  }
}

TYPED_TEST(DepthwiseConvolutionCudaTest, PoisonStaysWithThePixelsThatReadIt) {
  constexpr int kHeight = 7, kWidth = 12, kPixels = kHeight * kWidth;
  constexpr int kRow = 3, kColumn = 5;
  for (const int kernel : {3, 5}) {
    Problem<TypeParam> problem(3, kHeight, kWidth, 8, kernel, 1);
    const Matrix<TypeParam> clean = problem.Run();
    for (const float poison : {kNan, kInfinity, -kInfinity}) {
      Problem<TypeParam> poisoned = problem;
      poisoned.x.at(kPixels + kRow * kWidth + kColumn, 3) =
          static_cast<TypeParam>(poison);
      const Matrix<TypeParam> dirty = poisoned.Run();
      for (int i = 0; i < dirty.rows(); ++i) {
        const int row = i % kPixels / kWidth, column = i % kWidth;
        const bool reads = i / kPixels == 1 &&
                           std::abs(row - kRow) <= kernel / 2 &&
                           std::abs(column - kColumn) <= kernel / 2;
        ASSERT_EQ(dirty.RowEquals(i, clean, i), !reads) << i;
        ASSERT_EQ(dirty.RowIsFinite(i), !reads) << i;
      }
    }
  }
}

TYPED_TEST(DepthwiseConvolutionCudaTest, ANanIsNotClamped) {
  Problem<TypeParam> problem(1, 3, 3, 4, 3, 1);
  problem.activation = CudaActivation::kRelu6;
  problem.x.at(4, 2) = static_cast<TypeParam>(kNan);
  const Matrix<TypeParam> y = problem.Run();
  for (int i = 0; i < 9; ++i) {
    EXPECT_TRUE(std::isnan(static_cast<float>(y.at(i, 2)))) << i;
    EXPECT_FALSE(std::isnan(static_cast<float>(y.at(i, 1)))) << i;
  }
}

TYPED_TEST(DepthwiseConvolutionCudaTest, NothingToDoIsFine) {
  for (const auto& [count, height, width, channels] :
       {std::array{0, 3, 3, 4}, {2, 0, 3, 4}, {2, 3, 0, 4}, {2, 3, 3, 0}}) {
    const Problem<TypeParam> problem(count, height, width, channels, 3, 1);
    EXPECT_TRUE(DepthwiseConvolutionCuda(problem.Args(), TestStream()).ok());
  }
}

TYPED_TEST(DepthwiseConvolutionCudaTest, RefusesWhatItHasNoKernelFor) {
  const auto code = [](int kernel, int stride, CudaActivation activation) {
    Problem<TypeParam> problem(1, 4, 4, 4, kernel, stride);
    problem.activation = activation;
    return DepthwiseConvolutionCuda(problem.Args(), TestStream()).code();
  };
  for (const auto& [kernel, stride, activation] :
       {std::tuple{1, 1, CudaActivation::kNone},
        {9, 1, CudaActivation::kNone},
        {3, 3, CudaActivation::kNone},
        {3, 1, CudaActivation::kGeluErf},
        {3, 1, CudaActivation::kGeluTanh}}) {
    EXPECT_EQ(code(kernel, stride, activation),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace sfmamba::kernels
