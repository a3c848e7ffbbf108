#include "kernels/linear/int8_gemm.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/linear/gelu.h"
#include "tests/kernels/linear/int8_vl256.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename T>
using Aligned = std::vector<T, AlignedAllocator<T>>;

// The kernels of one instruction set. They read weights that are packed for the
// instruction set `packing`.
struct Kernel {
  std::string name;
  CpuIsa packing;
  void (*multiply)(const Int8GemmArgs&);
  void (*quantize)(const QuantizeArgs&);
};

// A matrix product of random values. The values are the same in each Problem
// with the same sizes.
struct Problem {
  Problem(int64_t rows, int in, int out) : x(rows, in), weights(out, in, 0) {
    std::mt19937 random(1);
    x.FillNormal(random, 0.3f, 1);
    weights.FillNormal(random, 0, 1);
    bias = Normals(random, out, 0, 1);
  }

  int64_t rows() const { return x.rows(); }
  int in() const { return x.columns(); }
  int out() const { return static_cast<int>(weights.rows()); }

  Matrix<float> x, weights;
  std::vector<float> bias;  // Empty if there is none.
};

// The packed weights of a problem, and its rows of x, rounded to int8.
class Prepared {
 public:
  template <typename Quantize>
  Prepared(const Problem& problem, CpuIsa packing, Quantize quantize)
      : problem_(problem),
        packed_(Int8PackedSize(problem.in(), problem.out(), packing)),
        scales_(Int8PackedOutputs(problem.out(), packing)),
        excess_(scales_.size()),
        values_(problem.rows() * QuantizedStride(problem.in())),
        x_scales_(problem.rows()) {
    PackInt8Weights(problem.weights.data(), problem.in(), problem.out(),
                    Weights(), packing);
    quantize({problem.rows(), problem.in(), problem.x.data(),
              problem.x.stride(), values_.data(), x_scales_.data()});
  }

  // Sets y to 1 everywhere and returns the product's arguments.
  Int8GemmArgs Args(Matrix<float>& y) {
    for (int64_t i = 0; i < y.rows(); ++i) {
      for (int c = 0; c < y.columns(); ++c) y.at(i, c) = 1;
    }
    Int8GemmArgs args{};
    args.rows = problem_.rows();
    args.in = problem_.in();
    args.out = problem_.out();
    args.x = problem_.x.data();
    args.x_stride = problem_.x.stride();
    args.x_values = values_.data();
    args.x_scales = x_scales_.data();
    args.weights = Weights();
    if (!problem_.bias.empty()) args.bias = problem_.bias.data();
    args.y = y.data();
    args.y_stride = y.stride();
    return args;
  }

  const Aligned<uint8_t>& values() const { return values_; }
  const std::vector<float>& x_scales() const { return x_scales_; }

 private:
  Int8Weights Weights() {
    return {packed_.data(), scales_.data(), excess_.data()};
  }

  const Problem& problem_;
  Aligned<int8_t> packed_;
  std::vector<float> scales_;
  std::vector<int32_t> excess_;
  Aligned<uint8_t> values_;
  std::vector<float> x_scales_;
};

// Multiplies with the kernels for this CPU and returns y.
Matrix<float> Multiply(const Problem& problem, bool add = false,
                       bool gelu = false) {
  Prepared prepared(problem, ActiveCpuIsa(),
                    [](const QuantizeArgs& args) { QuantizeRowsCpu(args); });
  Matrix<float> y(problem.rows(), problem.out());
  Int8GemmArgs args = prepared.Args(y);
  args.add = add;
  args.gelu = gelu;
  Int8GemmCpu(args);
  EXPECT_TRUE(y.GuardsIntact());
  return y;
}

std::vector<Kernel> Kernels() {
  std::vector<Kernel> kernels;
  if (HasAvxVnni()) {
    kernels.push_back(
        {"AvxVnni", CpuIsa::kAvx2, Int8GemmAvxVnni, QuantizeRowsAvxVnni});
  }
  if (HasAvx512Vnni()) {
    kernels.push_back(
        {"Avx512", CpuIsa::kAvx512, Int8GemmAvx512, QuantizeRowsAvx512});
    kernels.push_back(
        {"Vl256", CpuIsa::kAvx2, Int8GemmVl256, QuantizeRowsVl256});
  }
  return kernels;
}

class Int8KernelTest : public testing::TestWithParam<Kernel> {};

// The results must have the same bits as the scalar loop's.
TEST_P(Int8KernelTest, EqualsTheScalarLoop) {
  for (const int rows : {1, 6, 14, 15, 50}) {
    for (const int in : {1, 3, 16, 65, 260}) {
      for (const int out : {1, 8, 31, 33, 65}) {
        const Problem problem(rows, in, out);
        Prepared prepared(problem, GetParam().packing, GetParam().quantize);
        const Prepared expected(problem, GetParam().packing,
                                QuantizeRowsScalar);
        ASSERT_EQ(prepared.values(), expected.values());
        ASSERT_EQ(prepared.x_scales(), expected.x_scales());
        for (const bool add : {false, true}) {
          Matrix<float> a(rows, out), b(rows, out);
          Int8GemmArgs args = prepared.Args(a);
          args.add = add;
          GetParam().multiply(args);
          args = prepared.Args(b);
          args.add = add;
          Int8GemmScalar(args, GetParam().packing);
          ASSERT_TRUE(a == b) << rows << " rows, " << in << " to " << out;
        }
      }
    }
  }
}

// All quantized values are at their limits.
TEST_P(Int8KernelTest, SumsDoNotOverflow) {
  constexpr int kIn = 1 << 17;
  Problem problem(1, kIn, 2);
  for (int k = 0; k < kIn; ++k) {
    problem.x.at(0, k) = -127;
    problem.weights.at(0, k) = -127;
    problem.weights.at(1, k) = 127;
  }
  problem.bias.clear();
  Prepared prepared(problem, GetParam().packing, GetParam().quantize);
  Matrix<float> y(1, 2);
  GetParam().multiply(prepared.Args(y));
  EXPECT_EQ(y.at(0, 0), 127.0f * 127 * kIn);
  EXPECT_EQ(y.at(0, 1), -127.0f * 127 * kIn);
}

INSTANTIATE_TEST_SUITE_P(All, Int8KernelTest, testing::ValuesIn(Kernels()),
                         [](const testing::TestParamInfo<Kernel>& info) {
                           return info.param.name;
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Int8KernelTest);

// Rounding to int8 changes each factor by at most half of its scale. The error
// of the whole product must therefore be small, too.
TEST(Int8GemmTest, IsNearTheProduct) {
  const Problem problem(20, 200, 40);
  const Matrix<float> y = Multiply(problem);
  double squares = 0, errors = 0;
  for (int i = 0; i < 20; ++i) {
    for (int o = 0; o < 40; ++o) {
      double sum = problem.bias[o];
      for (int k = 0; k < 200; ++k) {
        sum += double{problem.x.at(i, k)} * problem.weights.at(o, k);
      }
      squares += sum * sum;
      errors += std::pow(y.at(i, o) - sum, 2);
    }
  }
  EXPECT_LE(std::sqrt(errors / squares), 0.012);
}

TEST(Int8GemmTest, ValuesAreTheNearestMultiples) {
  const Problem problem(3, 70, 1);
  const Prepared prepared(
      problem, ActiveCpuIsa(),
      [](const QuantizeArgs& args) { QuantizeRowsCpu(args); });
  for (int i = 0; i < 3; ++i) {
    const float scale = prepared.x_scales()[i];
    const uint8_t* const values = &prepared.values()[i * QuantizedStride(70)];
    for (int k = 0; k < 70; ++k) {
      EXPECT_NEAR((values[k] - 128) * scale, problem.x.at(i, k),
                  0.5001f * scale);
    }
    for (int k = 70; k < QuantizedStride(70); ++k) EXPECT_EQ(values[k], 128);
  }
}

TEST(Int8GemmTest, ARowDoesNotDependOnOtherRowsAndOutputs) {
  const Problem problem(40, 100, 100);
  const Matrix<float> whole = Multiply(problem);
  Prepared prepared(problem, ActiveCpuIsa(), [](const QuantizeArgs& args) {
    QuantizeRowsCpu(SliceRows(args, 0, 17));
    QuantizeRowsCpu(SliceRows(args, 17, 40));
  });
  Matrix<float> y(40, 100);
  const Int8GemmArgs args = prepared.Args(y);
  const int64_t panel = Int8PanelWidth();
  for (const auto& [begin, end] : {std::pair(0, 1), {1, 16}, {16, 40}}) {
    const Int8GemmArgs rows = SliceRows(args, begin, end);
    Int8GemmCpu(SliceOutputs(rows, 0, panel));
    Int8GemmCpu(SliceOutputs(rows, panel, 100));
  }
  EXPECT_TRUE(y == whole);
}

TEST(Int8GemmTest, GeluFollowsTheBias) {
  const Problem problem(20, 50, 40);
  const Matrix<float> before = Multiply(problem);
  const Matrix<float> y = Multiply(problem, /*add=*/false, /*gelu=*/true);
  Matrix<float> expected(20, 40);
  GeluErfCpu<float>({20, 40, before.data(), before.stride(), expected.data(),
                     expected.stride()});
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(y.RowEquals(i, expected, i));
  }
}

TEST(Int8GemmTest, ZerosGiveTheBias) {
  Problem problem(3, 20, 40);
  for (int k = 0; k < 20; ++k) {
    problem.x.at(0, k) = 0;
    problem.x.at(1, k) = 1e-38f;  // 127 divided by this is infinite.
    problem.weights.at(7, k) = 0;
  }
  const Matrix<float> y = Multiply(problem);
  for (int o = 0; o < 40; ++o) {
    EXPECT_EQ(y.at(0, o), problem.bias[o]);
    EXPECT_EQ(y.at(1, o), problem.bias[o]);
  }
  EXPECT_EQ(y.at(2, 7), problem.bias[7]);
  problem.bias.clear();
  const Matrix<float> sum = Multiply(problem, /*add=*/true);
  for (int o = 0; o < 40; ++o) EXPECT_EQ(sum.at(0, o), 1);
}

// The other rows must keep their bits.
TEST(Int8GemmTest, RowsThatAreNotFiniteStaySo) {
  for (const float poison : {std::nanf(""), kInfinity, -kInfinity}) {
    Problem problem(30, 70, 40);
    const Matrix<float> clean = Multiply(problem, /*add=*/true);
    for (const int row : {0, 16, 17, 29}) problem.x.at(row, 66) = poison;
    const Matrix<float> y = Multiply(problem, /*add=*/true);
    for (int i = 0; i < 30; ++i) {
      if (i != 0 && i != 16 && i != 17 && i != 29) {
        EXPECT_TRUE(y.RowEquals(i, clean, i)) << i;
        continue;
      }
      for (int o = 0; o < 40; ++o) {
        EXPECT_FALSE(std::isfinite(y.at(i, o))) << i;
        // An infinity times a weight that rounds to 0 is NaN.
        if (std::isinf(y.at(i, o))) {
          EXPECT_EQ(y.at(i, o), poison * problem.weights.at(o, 66));
        }
      }
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels
