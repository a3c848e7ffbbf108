#include "kernels/linear/gelu.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

constexpr double kTolerance = 2e-6;  // Relative to the largest output.

double ExactErf(double v) { return v / 2 * std::erfc(-v / std::sqrt(2.0)); }

double ExactTanh(double v) {
  const double z = std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v);
  return v / (1 + std::exp(-2 * z));
}

template <typename T>
GeluArgs<T> InPlace(Matrix<T>* x, const std::vector<float>* bias) {
  GeluArgs<T> args{};
  args.rows = x->rows();
  args.channels = x->columns();
  args.x = args.y = x->data();
  args.x_stride = args.y_stride = x->stride();
  args.bias = bias != nullptr ? bias->data() : nullptr;
  return args;
}

template <typename T>
void ExpectAgreement(CpuIsa isa, int channels, bool with_bias) {
  std::mt19937 random(1);
  Matrix<T> x(33, channels);
  x.FillNormal(random, 0, 1.5f);
  const std::vector<float> bias = Normals(random, channels, 0, 1);
  Matrix<double> erf(33, channels), tanh(33, channels);
  for (int i = 0; i < 33; ++i) {
    for (int c = 0; c < channels; ++c) {
      double v = static_cast<float>(x.at(i, c));
      if (with_bias) v += bias[c];
      erf.at(i, c) = ExactErf(v);
      tanh.at(i, c) = ExactTanh(v);
    }
  }
  Matrix<T> y = x, z = x;
  GeluErfCpu(InPlace(&y, with_bias ? &bias : nullptr), isa);
  GeluTanhCpu(InPlace(&z, with_bias ? &bias : nullptr), isa);
  ExpectClose(y, erf, kTolerance);
  ExpectClose(z, tanh, kTolerance);
  EXPECT_TRUE(y.GuardsIntact());
  EXPECT_TRUE(z.GuardsIntact());
}

class GeluTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isa, GeluTest, testing::ValuesIn(SupportedCpuIsas()),
                         IsaName);

TEST_P(GeluTest, AgreesWithFp64) {
  for (int channels : {1, 7, 8, 66, 1280}) {
    for (bool with_bias : {false, true}) {
      ExpectAgreement<float>(GetParam(), channels, with_bias);
      ExpectAgreement<BFloat16>(GetParam(), channels, with_bias);
    }
  }
}

TEST_P(GeluTest, StaysWithinTheToleranceOnADenseGrid) {
  constexpr int kCount = 200001;
  Matrix<float> x(1, kCount);
  for (int c = 0; c < kCount; ++c) x.at(0, c) = -10 + 1e-4f * c;
  Matrix<float> y = x, z = x;
  GeluErfCpu(InPlace<float>(&y, nullptr), GetParam());
  GeluTanhCpu(InPlace<float>(&z, nullptr), GetParam());
  for (int c = 0; c < kCount; ++c) {
    const double v = x.at(0, c);
    const double tolerance = 6e-7 + 2.4e-7 * std::abs(v);
    ASSERT_NEAR(y.at(0, c), ExactErf(v), tolerance) << v;
    ASSERT_NEAR(z.at(0, c), ExactTanh(v), tolerance) << v;
  }
}

TEST_P(GeluTest, HandlesLargeValuesAndNan) {
  const float values[] = {-1e30f,
                          -100,
                          -12,
                          12,
                          100,
                          1e30f,
                          std::numeric_limits<float>::quiet_NaN()};
  Matrix<float> x(1, 7);
  for (int c = 0; c < 7; ++c) x.at(0, c) = values[c];
  Matrix<float> y = x, z = x;
  GeluErfCpu(InPlace<float>(&y, nullptr), GetParam());
  GeluTanhCpu(InPlace<float>(&z, nullptr), GetParam());
  for (const Matrix<float>* result : {&y, &z}) {
    for (int c = 0; c < 3; ++c) EXPECT_NEAR(result->at(0, c), 0, 1e-7);
    for (int c = 3; c < 6; ++c) {
      EXPECT_NEAR(result->at(0, c) / values[c], 1, 1e-6);
    }
    EXPECT_TRUE(std::isnan(result->at(0, 6)));
  }
}

}  // namespace
}  // namespace sfmamba::kernels
