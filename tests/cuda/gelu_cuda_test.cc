#include "kernels/gelu_cuda.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/cuda/device_matrix.h"
#include "tests/cuda/device_memory.h"
#include "tests/kernels/matrix.h"

namespace sfmamba {
namespace {

constexpr double kTolerance = 2e-6;  // Of the largest output.

double ExactErf(double v) { return v / 2 * std::erfc(-v / std::sqrt(2.0)); }

double ExactTanh(double v) {
  const double z = std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v);
  return v / (1 + std::exp(-2 * z));
}

template <typename T>
using Launcher = absl::Status (*)(const GeluArgs<T>&, CudaStream);

// gelu(x + bias), or gelu(x) without; in memory of its own or in x's.
template <typename T>
Matrix<T> Activate(Launcher<T> launcher, const Matrix<T>& x,
                   const std::vector<float>& bias, bool in_place) {
  const DeviceMatrix<T> in(x);
  const DeviceMatrix<T> out(Matrix<T>(
      x.rows(), x.columns(), static_cast<int>(x.stride()) - x.columns()));
  const DeviceMatrix<T>& y = in_place ? in : out;
  const DeviceArray<float> device_bias(bias);
  GeluArgs<T> args{};
  args.rows = x.rows();
  args.channels = x.columns();
  args.x = in.data();
  args.x_stride = in.stride();
  args.y = y.data();
  args.y_stride = y.stride();
  args.bias = bias.empty() ? nullptr : device_bias.data();
  EXPECT_TRUE(launcher(args, TestStream()).ok());
  EXPECT_TRUE(in_place || in.ToHost() == x);
  return y.ToHost();
}

template <typename T>
void ExpectAgreement(int rows, int channels, int padding, bool with_bias) {
  std::mt19937 random(1);
  Matrix<T> x(rows, channels, padding);
  x.FillNormal(random, 0, 1.5f);
  std::vector<float> bias;
  if (with_bias) bias = Normals(random, channels, 0, 1);
  Matrix<double> erf(rows, channels), tanh(rows, channels);
  for (int i = 0; i < rows; ++i) {
    for (int c = 0; c < channels; ++c) {
      double v = static_cast<float>(x.at(i, c));
      if (with_bias) v += bias[c];
      erf.at(i, c) = ExactErf(v);
      tanh.at(i, c) = ExactTanh(v);
    }
  }
  const Matrix<T> y = Activate<T>(GeluErfCuda, x, bias, false);
  const Matrix<T> z = Activate<T>(GeluTanhCuda, x, bias, false);
  ExpectClose(y, erf, kTolerance);
  ExpectClose(z, tanh, kTolerance);
  EXPECT_TRUE(Activate<T>(GeluErfCuda, x, bias, true) == y);
  EXPECT_TRUE(Activate<T>(GeluTanhCuda, x, bias, true) == z);
}

template <typename T>
class GeluCudaTest : public DeviceTest {};
TYPED_TEST_SUITE(GeluCudaTest, ElementTypes);

TYPED_TEST(GeluCudaTest, AgreesWithFp64) {
  for (int channels : {1, 7, 8, 66, 1280, 2056}) {
    for (int padding : {0, 5, 8}) {
      for (bool with_bias : {false, true}) {
        ExpectAgreement<TypeParam>(9, channels, padding, with_bias);
      }
    }
  }
}

// One row, as a dense array is described, of any length; more rows than a block
// has threads.
TYPED_TEST(GeluCudaTest, TakesLongAndManyRows) {
  for (int count : {1, 4099, 3 * 4096, 3 * 512}) {
    ExpectAgreement<TypeParam>(1, count, 0, false);
  }
  ExpectAgreement<TypeParam>(1027, 1, 0, true);
}

TYPED_TEST(GeluCudaTest, NanStaysWhereItIs) {
  std::mt19937 random(1);
  Matrix<TypeParam> x(9, 64, 8);
  x.FillNormal(random, 0, 1);
  Matrix<TypeParam> poisoned = x;
  poisoned.at(4, 5) =
      static_cast<TypeParam>(std::numeric_limits<float>::quiet_NaN());
  for (Launcher<TypeParam> launcher :
       {&GeluErfCuda<TypeParam>, &GeluTanhCuda<TypeParam>}) {
    const Matrix<TypeParam> y = Activate<TypeParam>(launcher, x, {}, false);
    Matrix<TypeParam> z = Activate<TypeParam>(launcher, poisoned, {}, false);
    EXPECT_TRUE(std::isnan(static_cast<float>(z.at(4, 5))));
    z.at(4, 5) = y.at(4, 5);
    EXPECT_TRUE(z == y);
  }
}

TEST(GeluCuda, StaysWithinTheToleranceOnADenseGrid) {
  if (!HasDevice()) GTEST_SKIP() << "no GPU";
  constexpr int kCount = 200001;
  Matrix<float> x(1, kCount);
  for (int c = 0; c < kCount; ++c) x.at(0, c) = -10 + 1e-4f * c;
  const Matrix<float> y = Activate<float>(GeluErfCuda, x, {}, false);
  const Matrix<float> z = Activate<float>(GeluTanhCuda, x, {}, false);
  for (int c = 0; c < kCount; ++c) {
    const double v = x.at(0, c);
    const double tolerance = 6e-7 + 2.4e-7 * std::abs(v);
    ASSERT_NEAR(y.at(0, c), ExactErf(v), tolerance) << v;
    ASSERT_NEAR(z.at(0, c), ExactTanh(v), tolerance) << v;
  }
}

TEST(GeluCuda, HandlesLargeValues) {
  if (!HasDevice()) GTEST_SKIP() << "no GPU";
  const float values[] = {-1e30f, -100, -12, 12, 100, 1e30f};
  Matrix<float> x(1, 6);
  for (int c = 0; c < 6; ++c) x.at(0, c) = values[c];
  for (Launcher<float> launcher : {&GeluErfCuda<float>, &GeluTanhCuda<float>}) {
    const Matrix<float> y = Activate<float>(launcher, x, {}, false);
    for (int c = 0; c < 3; ++c) EXPECT_NEAR(y.at(0, c), 0, 1e-7);
    for (int c = 3; c < 6; ++c) {
      EXPECT_NEAR(y.at(0, c) / values[c], 1, 1e-6);
    }
  }
}

}  // namespace
}  // namespace sfmamba
