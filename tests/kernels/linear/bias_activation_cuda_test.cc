#include "kernels/linear/bias_activation_cuda.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/cuda/device_matrix.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

constexpr double kTolerance = 2e-6;  // Relative to the largest output.
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

constexpr CudaActivation kActivations[] = {
    CudaActivation::kNone, CudaActivation::kRelu, CudaActivation::kRelu6,
    CudaActivation::kGeluErf, CudaActivation::kGeluTanh};

double Exact(CudaActivation activation, double v) {
  switch (activation) {
    case CudaActivation::kNone:
      break;
    case CudaActivation::kRelu:
      return std::max(v, 0.0);
    case CudaActivation::kRelu6:
      return std::min(std::max(v, 0.0), 6.0);
    case CudaActivation::kGeluErf:
      return v / 2 * std::erfc(-v / std::sqrt(2.0));
    case CudaActivation::kGeluTanh: {
      const double z =
          std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v);
      return v / (1 + std::exp(-2 * z));
    }
  }
  return v;
}

// The array whose memory y uses.
enum class Target { kApart, kX, kAdd };

// Random x [rows, channels], with an optional bias and optional values to add.
template <typename T>
struct Problem {
  Problem(int rows, int channels, int padding, bool with_bias, bool with_add)
      : x(rows, channels, padding), add(with_add ? rows : 0, channels, 8) {
    std::mt19937 random(1);
    x.FillNormal(random, 0, 2.5f);
    add.FillNormal(random, 0, 1);
    if (with_bias) bias = Normals(random, channels, 0, 1);
  }

  bool has_add() const { return add.rows() > 0; }

  // Runs the kernel on the device. Expects that no other memory changes.
  Matrix<T> Run(CudaActivation activation, Target target) const {
    const DeviceMatrix<T> device_x(x), device_add(add);
    const DeviceMatrix<T> apart(Matrix<T>(x.rows(), x.columns(), 16));
    const DeviceArray<float> device_bias(bias);
    const DeviceMatrix<T>& y = target == Target::kX     ? device_x
                               : target == Target::kAdd ? device_add
                                                        : apart;
    BiasActivationArgs<T> args{};
    args.rows = x.rows();
    args.channels = x.columns();
    args.x = device_x.data();
    args.x_stride = device_x.stride();
    args.y = y.data();
    args.y_stride = y.stride();
    args.activation = activation;
    if (!bias.empty()) args.bias = device_bias.data();
    if (has_add()) {
      args.add = device_add.data();
      args.add_stride = device_add.stride();
    }
    EXPECT_TRUE(BiasActivationCuda(args, TestStream()).ok());
    EXPECT_TRUE(target == Target::kX || device_x.ToHost() == x);
    EXPECT_TRUE(target == Target::kAdd || device_add.ToHost() == add);
    return y.ToHost();
  }

  Matrix<double> Reference(CudaActivation activation) const {
    Matrix<double> y(x.rows(), x.columns());
    for (int i = 0; i < x.rows(); ++i) {
      for (int c = 0; c < x.columns(); ++c) {
        double v = static_cast<float>(x.at(i, c));
        if (!bias.empty()) v += bias[c];
        y.at(i, c) = Exact(activation, v);
        if (has_add()) y.at(i, c) += static_cast<float>(add.at(i, c));
      }
    }
    return y;
  }

  Matrix<T> x, add;
  std::vector<float> bias;
};

// Compares the values of two matrices, which may have different strides.
template <typename T>
bool SameBits(const Matrix<T>& a, const Matrix<T>& b) {
  bool same = a.rows() == b.rows();
  for (int i = 0; same && i < a.rows(); ++i) same = a.RowEquals(i, b, i);
  return same;
}

template <typename T>
void ExpectAgreement(const Problem<T>& problem, CudaActivation activation) {
  const Matrix<T> y = problem.Run(activation, Target::kApart);
  ExpectClose(y, problem.Reference(activation), kTolerance);
  EXPECT_TRUE(SameBits(problem.Run(activation, Target::kApart), y));
  EXPECT_TRUE(SameBits(problem.Run(activation, Target::kX), y));
  if (!problem.has_add()) return;
  EXPECT_TRUE(SameBits(problem.Run(activation, Target::kAdd), y));
}

template <typename T>
void ExpectAgreement(int rows, int channels, int padding) {
  for (bool with_bias : {false, true}) {
    for (bool with_add : {false, true}) {
      const Problem<T> problem(rows, channels, padding, with_bias, with_add);
      for (CudaActivation activation : kActivations) {
        SCOPED_TRACE(testing::Message()
                     << rows << "x" << channels << " padding " << padding
                     << " bias " << with_bias << " add " << with_add
                     << " activation " << static_cast<int>(activation));
        ExpectAgreement(problem, activation);
      }
    }
  }
}

template <typename T>
class BiasActivationCudaTest : public DeviceTest {};
TYPED_TEST_SUITE(BiasActivationCudaTest, ElementTypes);

TYPED_TEST(BiasActivationCudaTest, AgreesWithFp64) {
  for (int channels : {1, 7, 8, 66, 320, 2056}) {
    for (int padding : {0, 5, 8}) {
      ExpectAgreement<TypeParam>(9, channels, padding);
    }
  }
}

// A dense array of any length is described as one row. The second part has more
// rows than a block has threads.
TYPED_TEST(BiasActivationCudaTest, TakesLongAndManyRows) {
  for (int count : {4099, 3 * 4096, 3 * 512}) {
    ExpectAgreement<TypeParam>(1, count, 0);
  }
  ExpectAgreement<TypeParam>(1027, 1, 0);
  ExpectAgreement<TypeParam>(261, 8, 0);
}

TYPED_TEST(BiasActivationCudaTest, NothingToDoIsFine) {
  for (int channels : {0, 8}) {
    BiasActivationArgs<TypeParam> args{};
    args.channels = channels;
    args.rows = 8 - channels;
    EXPECT_TRUE(BiasActivationCuda(args, TestStream()).ok());
  }
}

// Expects that the activation maps the value x to y.
void ExpectStays(CudaActivation activation, float x, float y) {
  const bool gelu = activation == CudaActivation::kGeluErf ||
                    activation == CudaActivation::kGeluTanh;
  if (std::isnan(x) || (gelu && x < 0)) {
    EXPECT_TRUE(std::isnan(y)) << x << " became " << y;
  } else {
    EXPECT_EQ(y, gelu ? x : Exact(activation, x));
  }
}

TYPED_TEST(BiasActivationCudaTest, NanAndInfinityStayWhereTheyAre) {
  const Problem<TypeParam> problem(9, 64, 8, false, false);
  Problem<TypeParam> poisoned = problem;
  const float values[] = {kNan, kInfinity, -kInfinity};
  for (int k = 0; k < 3; ++k) {
    poisoned.x.at(2 * k, 5 + k) = static_cast<TypeParam>(values[k]);
  }
  for (CudaActivation activation : kActivations) {
    const Matrix<TypeParam> y = problem.Run(activation, Target::kApart);
    Matrix<TypeParam> z = poisoned.Run(activation, Target::kApart);
    for (int k = 0; k < 3; ++k) {
      ExpectStays(activation, values[k],
                  static_cast<float>(z.at(2 * k, 5 + k)));
      z.at(2 * k, 5 + k) = y.at(2 * k, 5 + k);
    }
    EXPECT_TRUE(z == y);
  }
}

TYPED_TEST(BiasActivationCudaTest, NanThatIsAddedStaysWhereItIs) {
  const Problem<TypeParam> problem(9, 64, 8, true, true);
  Problem<TypeParam> poisoned = problem;
  poisoned.add.at(4, 5) = static_cast<TypeParam>(kNan);
  for (CudaActivation activation : kActivations) {
    const Matrix<TypeParam> y = problem.Run(activation, Target::kApart);
    Matrix<TypeParam> z = poisoned.Run(activation, Target::kApart);
    EXPECT_TRUE(std::isnan(static_cast<float>(z.at(4, 5))));
    z.at(4, 5) = y.at(4, 5);
    EXPECT_TRUE(z == y);
  }
}

TEST(BiasActivationCuda, GeluStaysWithinTheToleranceOnADenseGrid) {
  if (!HasDevice()) GTEST_SKIP() << "no GPU";
  constexpr int kCount = 200001;
  Problem<float> problem(1, kCount, 0, false, false);
  for (int c = 0; c < kCount; ++c) problem.x.at(0, c) = -10 + 1e-4f * c;
  for (CudaActivation activation :
       {CudaActivation::kGeluErf, CudaActivation::kGeluTanh}) {
    const Matrix<float> y = problem.Run(activation, Target::kApart);
    for (int c = 0; c < kCount; ++c) {
      const double v = problem.x.at(0, c);
      const double tolerance = 6e-7 + 2.4e-7 * std::abs(v);
      ASSERT_NEAR(y.at(0, c), Exact(activation, v), tolerance) << v;
    }
  }
}

TEST(BiasActivationCuda, GeluHandlesLargeValues) {
  if (!HasDevice()) GTEST_SKIP() << "no GPU";
  const float values[] = {-1e30f, -100, -12, 12, 100, 1e30f};
  Problem<float> problem(1, 6, 0, false, false);
  for (int c = 0; c < 6; ++c) problem.x.at(0, c) = values[c];
  for (CudaActivation activation :
       {CudaActivation::kGeluErf, CudaActivation::kGeluTanh}) {
    const Matrix<float> y = problem.Run(activation, Target::kApart);
    for (int c = 0; c < 3; ++c) EXPECT_NEAR(y.at(0, c), 0, 1e-7);
    for (int c = 3; c < 6; ++c) {
      EXPECT_NEAR(y.at(0, c) / values[c], 1, 1e-6);
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels
