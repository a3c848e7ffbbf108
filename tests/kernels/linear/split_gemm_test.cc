// Tests matrix products with SplitFloat weights. They split each float into
// bf16 parts and multiply the parts. The tests compare them with products of
// floats.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/linear/packed_gemm.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kSmallest = 0x1p-126f;  // The smallest normal value.
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class SplitGemmTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasAmxBf16()) GTEST_SKIP() << "there is no AMX";
  }
};

struct Problem {
  Problem(int64_t rows, int in, int out) : x(rows, in), weights(out, in, 0) {}

  template <typename W>
  Matrix<float> Run(CpuIsa isa = ActiveCpuIsa()) const {
    const int in = x.columns(), out = static_cast<int>(weights.rows());
    std::vector<W> packed(PackedWeightsSize<W>(in, out, isa));
    PackWeights(weights.data(), in, out, packed.data(), isa);
    Matrix<float> y(x.rows(), out);
    GemmArgs<W> args{};
    args.rows = x.rows();
    args.in = in;
    args.out = out;
    args.x = x.data();
    args.x_stride = x.stride();
    args.weights = packed.data();
    args.bias = bias.empty() ? nullptr : bias.data();
    args.y = y.data();
    args.y_stride = y.stride();
    PackedGemmCpu(args, isa);
    EXPECT_TRUE(y.GuardsIntact());
    return y;
  }

  Matrix<float> x, weights;
  std::vector<float> bias;
};

// The errors of a matrix product. An output is a sum of terms. Its error is
// divided by the square root of the sum of the squared terms. `rms` is the root
// mean square of all errors, and `most` is the largest error.
struct Errors {
  double rms = 0, most = 0;
};

Errors ErrorsOf(const Problem& problem, const Matrix<float>& y) {
  Errors errors;
  for (int64_t i = 0; i < y.rows(); ++i) {
    for (int o = 0; o < y.columns(); ++o) {
      double sum = 0, squares = 0;
      for (int k = 0; k < problem.x.columns(); ++k) {
        const double product =
            double{problem.x.at(i, k)} * problem.weights.at(o, k);
        sum += product;
        squares += product * product;
      }
      const double error = std::abs(y.at(i, o) - sum) / std::sqrt(squares);
      errors.rms += error * error;
      errors.most = std::max(errors.most, error);
    }
  }
  errors.rms = std::sqrt(errors.rms / (y.rows() * y.columns()));
  return errors;
}

// Fills x and the weights with random values (mean + n1) * 2^(spread * n2). n1
// and n2 are standard normal values, different for each element.
void Fill(Problem& problem, float mean, float spread, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (Matrix<float>* matrix : {&problem.x, &problem.weights}) {
    for (int64_t i = 0; i < matrix->rows(); ++i) {
      for (int k = 0; k < matrix->columns(); ++k) {
        matrix->at(i, k) =
            (mean + normal(random)) * std::exp2(spread * normal(random));
      }
    }
  }
}

// Expects that y differs from `expected` by at most `bound` times the sum of
// the absolute values of the output's terms.
void ExpectNearInSum(const Problem& problem, const Matrix<float>& y,
                     const Matrix<float>& expected, double bound) {
  for (int64_t i = 0; i < y.rows(); ++i) {
    for (int o = 0; o < y.columns(); ++o) {
      double sum = problem.bias.empty() ? 0 : std::abs(problem.bias[o]);
      for (int k = 0; k < problem.x.columns(); ++k) {
        sum += std::abs(double{problem.x.at(i, k)} * problem.weights.at(o, k));
      }
      EXPECT_NEAR(y.at(i, o), expected.at(i, o), bound * sum)
          << "row " << i << ", output " << o;
    }
  }
}

TEST_F(SplitGemmTest, IsAsExactAsFloats) {
  for (const auto& [rows, in, out] :
       {std::array{70, 64, 64}, {70, 97, 64}, {70, 320, 100}, {51, 2560, 64}}) {
    for (const float mean : {0.0f, 1.0f}) {
      for (const float spread : {0.0f, 2.0f, 8.0f}) {
        Problem problem(rows, in, out);
        Fill(problem, mean, spread);
        const Errors split = ErrorsOf(problem, problem.Run<SplitFloat>());
        const Errors floats = ErrorsOf(problem, problem.Run<float>());
        EXPECT_LE(split.rms, 1.05 * floats.rms)
            << in << " " << mean << " " << spread;
        EXPECT_LE(split.most, 1.5 * floats.most)
            << in << " " << mean << " " << spread;
      }
    }
  }
}

// Each input has its own scale, and its weights have the inverse scale.
TEST_F(SplitGemmTest, IsAsExactAtTheEndsOfTheRange) {
  Problem problem(33, 100, 40);
  Fill(problem, 0, 0);
  for (int k = 0; k < 100; ++k) {
    const float scale = k % 3 == 0 ? 1e30f : k % 3 == 1 ? 1e-30f : 1;
    for (int i = 0; i < 33; ++i) problem.x.at(i, k) *= scale;
    for (int o = 0; o < 40; ++o) problem.weights.at(o, k) /= scale;
  }
  const Errors split = ErrorsOf(problem, problem.Run<SplitFloat>());
  const Errors floats = ErrorsOf(problem, problem.Run<float>());
  EXPECT_LE(split.rms, 1.05 * floats.rms);
  EXPECT_LE(split.most, 1.5 * floats.most);
}

// The tested outputs are sums with a single nonzero term, which is `value`
// times 1. They must therefore be equal to `value`.
TEST_F(SplitGemmTest, KeepsAllBitsOfValuesTimesOne) {
  for (const float value :
       {1.0f, -0x1.fffffep0f, 0x1.010102p5f, 1e-20f, 0x1p-100f, -kLargest,
        kLargest, 0x1.fefffep127f, 0x1.ffp127f, 0x1.0000fep-50f}) {
    Problem problem(3, 40, 64);
    problem.x.at(1, 7) = value;
    for (int o = 0; o < 64; ++o) problem.weights.at(o, 7) = 1;
    EXPECT_EQ(problem.Run<SplitFloat>().at(1, 35), value);
    std::swap(problem.x.at(1, 7), problem.weights.at(35, 7));
    EXPECT_EQ(problem.Run<SplitFloat>().at(1, 35), value);
  }
}

TEST_F(SplitGemmTest, MissesNoMoreThanTheSmallestNormalFloat) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> exponent(-150, -100), one(1, 2);
  for (int i = 0; i < 1000; ++i) {
    const float value = one(random) * std::exp2(exponent(random));
    Problem problem(1, 1, 1);
    problem.x.at(0, 0) = value;
    problem.weights.at(0, 0) = 1;
    ASSERT_LT(std::abs(problem.Run<SplitFloat>().at(0, 0) - value), kSmallest);
    std::swap(problem.x.at(0, 0), problem.weights.at(0, 0));
    ASSERT_LT(std::abs(problem.Run<SplitFloat>().at(0, 0) - value), kSmallest);
  }
}

// Some sizes are odd. The inputs form one block or several.
TEST_F(SplitGemmTest, AgreesWithTheScalarLoop) {
  for (const int rows : {1, 16, 17, 33, 70}) {
    for (const int in : {1, 31, 33, 385}) {
      for (const int out : {1, 31, 65}) {
        Problem problem(rows, in, out);
        Fill(problem, 1, 2);
        problem.bias = std::vector<float>(out, 0.5f);
        ExpectNearInSum(problem, problem.Run<SplitFloat>(),
                        problem.Run<SplitFloat>(CpuIsa::kScalar), 0x1p-18);
      }
    }
  }
}

// Each float is split into bf16 parts. If a part were missing, or multiplied by
// the wrong part of the other factor, a product would have a relative error of
// at least 2^-17.
TEST_F(SplitGemmTest, AgreesWithTheScalarLoopInSingleProducts) {
  for (int i = 0; i < 50; ++i) {
    Problem problem(3, 1, 5);
    Fill(problem, 0, 1, /*seed=*/i);
    ExpectNearInSum(problem, problem.Run<SplitFloat>(),
                    problem.Run<SplitFloat>(CpuIsa::kScalar), 0x1p-20);
  }
}

// A row of x with an infinity or a NaN must give the same bits as in the
// product of floats. The results of the other rows must not change.
TEST_F(SplitGemmTest, RowsThatAreNotFiniteComeOutAsFloatsGiveThem) {
  for (const float poison : {std::nanf(""), kInfinity, -kInfinity,
                             std::numeric_limits<float>::signaling_NaN()}) {
    for (const int rows : {1, 18, 40}) {
      Problem problem(rows, 70, 40);
      Fill(problem, 0, 0);
      for (int o = 0; o < 40; o += 3) problem.weights.at(o, 66) = 1;
      problem.weights.at(5, 66) = 0;
      problem.bias = std::vector<float>(40, 0.5f);
      const Matrix<float> clean = problem.Run<SplitFloat>();
      for (const int row : {0, 16, 17, 39}) {
        if (row < rows) problem.x.at(row, 66) = poison;
      }
      const Matrix<float> floats = problem.Run<float>();
      const Matrix<float> y = problem.Run<SplitFloat>();
      for (int64_t i = 0; i < rows; ++i) {
        const bool poisoned = i == 0 || i == 16 || i == 17 || i == 39;
        EXPECT_TRUE(y.RowEquals(i, poisoned ? floats : clean, i))
            << poison << ", row " << i << " of " << rows;
      }
    }
  }
}

TEST(SplitGemmScalarTest, InfinitiesStayInfinite) {
  Problem problem(2, 3, 2);
  problem.x.at(1, 1) = kInfinity;
  problem.weights.at(0, 1) = -2;
  const Matrix<float> y = problem.Run<SplitFloat>(CpuIsa::kScalar);
  EXPECT_EQ(y.at(1, 0), -kInfinity);
  EXPECT_TRUE(std::isnan(y.at(1, 1)));
  EXPECT_EQ(y.at(0, 0), 0);
}

// In the first and the last case, the terms are the largest float, and their
// sum overflows. In the second case, each term overflows.
TEST_F(SplitGemmTest, WhatOverflowsIsInfinite) {
  for (const auto& [value, weight] :
       {std::pair(kLargest, 1.0f), {1e30f, -1e30f}, {-1.0f, kLargest}}) {
    Problem problem(2, 5, 3);
    for (int k = 0; k < 5; ++k) {
      problem.x.at(1, k) = value;
      problem.weights.at(2, k) = weight;
    }
    const Matrix<float> y = problem.Run<SplitFloat>();
    EXPECT_EQ(y.at(1, 2), problem.Run<float>().at(1, 2));
    EXPECT_TRUE(std::isinf(y.at(1, 2)));
    EXPECT_EQ(y.at(0, 2), 0);
    EXPECT_EQ(y.at(1, 1), 0);
  }
}

}  // namespace
}  // namespace sfmamba::kernels
