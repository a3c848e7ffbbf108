#include "kernels/linear/packed_gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/linear/gelu.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

// With weights of type W.
template <typename W>
struct Product {
  Product(int64_t rows, int in, int out) : x(rows, in), weights(out, in, 0) {
    std::mt19937 random(1);
    x.FillNormal(random, 0.3f, 1);
    weights.FillNormal(random, 0, 1);
    bias = Normals(random, out, 0, 1);
  }

  int64_t rows() const { return x.rows(); }
  int in() const { return x.columns(); }
  int out() const { return static_cast<int>(weights.rows()); }

  std::vector<W> Packed(CpuIsa isa) const {
    std::vector<W> packed(PackedWeightsSize<W>(in(), out(), isa));
    PackWeights(weights.data(), in(), out(), packed.data(), isa);
    return packed;
  }

  // All but y.
  GemmArgs<W> Args(const std::vector<W>& packed) const {
    GemmArgs<W> args{};
    args.rows = rows();
    args.in = in();
    args.out = out();
    args.x = x.data();
    args.x_stride = x.stride();
    args.weights = packed.data();
    if (with_bias) args.bias = bias.data();
    return args;
  }

  Matrix<float> Run(CpuIsa isa) const {
    Matrix<float> y(rows(), out());
    const std::vector<W> packed = Packed(isa);
    GemmArgs<W> args = Args(packed);
    args.y = y.data();
    args.y_stride = y.stride();
    PackedGemmCpu(args, isa);
    EXPECT_TRUE(y.GuardsIntact());
    return y;
  }

  Matrix<double> Reference() const {
    Matrix<double> y(rows(), out());
    for (int64_t i = 0; i < rows(); ++i) {
      for (int o = 0; o < out(); ++o) {
        double sum = with_bias ? bias[o] : 0.0;
        for (int k = 0; k < in(); ++k) {
          sum += double{Rounded(x.at(i, k))} * Rounded(weights.at(o, k));
        }
        y.at(i, o) = sum;
      }
    }
    return y;
  }

  // Returns the value that the product reads.
  static float Rounded(float value) {
    return std::is_same_v<W, BFloat16> ? static_cast<float>(BFloat16(value))
                                       : value;
  }

  Matrix<float> x, weights;
  std::vector<float> bias;
  bool with_bias = true;
};

template <typename T>
class PackedGemmTest : public testing::Test {};

// Weights of one type, and an instruction set.
template <typename Weight, CpuIsa kOne>
struct Case {
  using W = Weight;
  static constexpr CpuIsa kIsa = kOne;
};
using Cases = testing::Types<
    Case<float, CpuIsa::kScalar>, Case<float, CpuIsa::kAvx2>,
    Case<float, CpuIsa::kAvx512>, Case<BFloat16, CpuIsa::kScalar>,
    Case<BFloat16, CpuIsa::kAvx512>, Case<SplitFloat, CpuIsa::kScalar>,
    Case<SplitFloat, CpuIsa::kAvx512>>;
struct CaseName {
  template <typename T>
  static std::string GetName(int) {
    using W = typename T::W;
    return std::string(std::is_same_v<W, float>      ? "fp32_"
                       : std::is_same_v<W, BFloat16> ? "bf16_"
                                                     : "split_") +
           CpuIsaName(T::kIsa);
  }
};
TYPED_TEST_SUITE(PackedGemmTest, Cases, CaseName);

#define SKIP_IF_UNSUPPORTED()                                     \
  using W = typename TypeParam::W;                                \
  constexpr CpuIsa kIsa = TypeParam::kIsa;                        \
  if (kIsa > DetectCpuIsa()) {                                    \
    GTEST_SKIP() << "this processor has no " << CpuIsaName(kIsa); \
  }

TYPED_TEST(PackedGemmTest, AgreesWithFp64) {
  SKIP_IF_UNSUPPORTED();
  for (int rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 51}) {
    for (int in : {1, 5, 20, 320, 385}) {
      for (int out : {1, 8, 15, 16, 17, 32, 36, 100}) {
        const Product<W> product(rows, in, out);
        ExpectClose(product.Run(kIsa), product.Reference(), 2e-6);
      }
    }
  }
}

// More than one block of rows and of inputs.
TYPED_TEST(PackedGemmTest, AgreesWithFp64InBlocks) {
  SKIP_IF_UNSUPPORTED();
  for (const auto& [rows, in, out] :
       {std::array{241, 30, 20}, {500, 800, 33}, {7, 2560, 40}}) {
    const Product<W> product(rows, in, out);
    ExpectClose(product.Run(kIsa), product.Reference(), 5e-6);
  }
}

TYPED_TEST(PackedGemmTest, TheBiasIsOptional) {
  SKIP_IF_UNSUPPORTED();
  for (int out : {32, 36}) {
    Product<W> product(9, 400, out);
    product.with_bias = false;
    ExpectClose(product.Run(kIsa), product.Reference(), 2e-6);
  }
}

TYPED_TEST(PackedGemmTest, Adds) {
  SKIP_IF_UNSUPPORTED();
  for (int out : {5, 32, 36}) {
    for (int in : {20, 800}) {
      const Product<W> product(9, in, out);
      Matrix<float> y(9, out);
      std::mt19937 random(2);
      y.FillNormal(random, 0, 10);
      Matrix<double> expected = product.Reference();
      for (int i = 0; i < 9; ++i) {
        for (int o = 0; o < out; ++o) expected.at(i, o) += y.at(i, o);
      }
      const std::vector<W> packed = product.Packed(kIsa);
      GemmArgs<W> args = product.Args(packed);
      args.add = true;
      args.y = y.data();
      args.y_stride = y.stride();
      PackedGemmCpu(args, kIsa);
      EXPECT_TRUE(y.GuardsIntact());
      ExpectClose(y, expected, 2e-6);
    }
  }
}

// In every count of rows and at every place among them.
TYPED_TEST(PackedGemmTest, ARowHasTheSameBitsBesideAnyOthers) {
  SKIP_IF_UNSUPPORTED();
  const Product<W> product(300, 500, 36);
  const Matrix<float> all = product.Run(kIsa);
  const std::vector<W> packed = product.Packed(kIsa);
  for (int64_t begin : {0, 1, 7, 100, 299}) {
    for (int64_t rows = 1; rows <= 25 && begin + rows <= 300; ++rows) {
      Matrix<float> y(300, 36);
      GemmArgs<W> args = product.Args(packed);
      args.y = y.data();
      args.y_stride = y.stride();
      PackedGemmCpu(SliceRows(args, begin, begin + rows), kIsa);
      for (int64_t i = 0; i < rows; ++i) {
        ASSERT_TRUE(y.RowEquals(begin + i, all, begin + i))
            << begin << " " << rows << " " << i;
      }
    }
  }
}

TYPED_TEST(PackedGemmTest, PartsOfTheOutputsHaveTheSameBits) {
  SKIP_IF_UNSUPPORTED();
  const int64_t width = PanelWidth<W>(kIsa);
  const Product<W> product(10, 500, static_cast<int>(4 * width + 3));
  const Matrix<float> all = product.Run(kIsa);
  Matrix<float> parts(10, product.out());
  const std::vector<W> packed = product.Packed(kIsa);
  GemmArgs<W> args = product.Args(packed);
  args.y = parts.data();
  args.y_stride = parts.stride();
  for (const auto& [begin, end] :
       {std::pair<int64_t, int64_t>(3 * width, product.out()),
        {0, width},
        {width, 3 * width}}) {
    PackedGemmCpu(SliceOutputs(args, begin, end), kIsa);
  }
  EXPECT_TRUE(parts == all);
}

TYPED_TEST(PackedGemmTest, NoRowsAreNoWork) {
  SKIP_IF_UNSUPPORTED();
  const Product<W> product(0, 20, 20);
  product.Run(kIsa);
}

TYPED_TEST(PackedGemmTest, PoisonStaysInItsRow) {
  SKIP_IF_UNSUPPORTED();
  for (float poison : {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity()}) {
    Product<W> product(13, 20, 36);
    const Matrix<float> clean = product.Run(kIsa);
    product.x.at(4, 3) = poison;
    const Matrix<float> y = product.Run(kIsa);
    for (int i = 0; i < 13; ++i) EXPECT_EQ(y.RowEquals(i, clean, i), i != 4);
    EXPECT_FALSE(y.RowIsFinite(4));
  }
}

TYPED_TEST(PackedGemmTest, TakesTheGeluOfWholeSums) {
  SKIP_IF_UNSUPPORTED();
  for (const int in : {20, 320, 1000}) {
    const Product<W> product(40, in, 50);
    const std::vector<W> packed = product.Packed(kIsa);
    Matrix<float> y(40, 50), expected(40, 50);
    GemmArgs<W> args = product.Args(packed);
    args.y = y.data();
    args.y_stride = y.stride();
    args.gelu = true;
    PackedGemmCpu(args, kIsa);
    EXPECT_TRUE(y.GuardsIntact());
    const Matrix<float> sums = product.Run(kIsa);
    GeluErfCpu<float>({40, 50, sums.data(), sums.stride(), expected.data(),
                       expected.stride()},
                      kIsa);
    EXPECT_TRUE(y == expected) << in;
  }
}

class Bf16RowsTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isa, Bf16RowsTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

// One and several blocks of inputs and rows, and panels of any width.
constexpr std::array<int, 3> kBf16Sizes[] = {
    {1, 1, 1},      {9, 33, 40},   {3, 384, 100}, {250, 7, 16},
    {130, 800, 36}, {51, 640, 64}, {3, 13000, 20}};

Matrix<BFloat16> RoundedMatrix(const Matrix<float>& x) {
  Matrix<BFloat16> rounded(x.rows(), x.columns());
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int c = 0; c < x.columns(); ++c) {
      rounded.at(i, c) = BFloat16(x.at(i, c));
    }
  }
  return rounded;
}

TEST_P(Bf16RowsTest, ReadWithTheBitsOfThoseThatTheProductRounds) {
  for (const auto& [rows, in, out] : kBf16Sizes) {
    const Product<BFloat16> product(rows, in, out);
    const Matrix<BFloat16> x = RoundedMatrix(product.x);
    const std::vector<BFloat16> packed = product.Packed(GetParam());
    Bf16GemmArgs args = product.Args(packed);
    args.x = nullptr;
    args.x_bf16 = x.data();
    args.x_stride = x.stride();
    Matrix<float> y(rows, out);
    args.y = y.data();
    args.y_stride = y.stride();
    PackedGemmCpu(args, GetParam());
    EXPECT_TRUE(y.GuardsIntact());
    EXPECT_TRUE(y == product.Run(GetParam())) << rows << " " << in;
  }
}

// The last rows are followed by NaN up to a multiple of 16.
TEST_P(Bf16RowsTest, DoNotDependOnWhatFollowsThem) {
  for (const auto& [rows, out] :
       {std::pair(1, 40), {17, 32}, {38, 100}, {51, 64}}) {
    Product<BFloat16> product(rows, 64, out);
    product.with_bias = false;
    const std::vector<BFloat16> packed = product.Packed(GetParam());
    const Matrix<BFloat16> x = RoundedMatrix(product.x);
    std::vector<BFloat16> more((rows + 15) / 16 * 16 * 64,
                               BFloat16(std::nanf("")));
    for (int64_t i = 0; i < rows; ++i) {
      std::copy_n(&x.at(i, 0), 64, &more[i * 64]);
    }
    Bf16GemmArgs args = product.Args(packed);
    args.x_bf16 = more.data();
    args.x_stride = 64;
    Matrix<float> y(rows, out);
    args.y = y.data();
    args.y_stride = y.stride();
    PackedGemmCpu(args, GetParam());
    EXPECT_TRUE(y.GuardsIntact());
    EXPECT_TRUE(y == product.Run(GetParam())) << rows << " " << out;
  }
}

TEST_P(Bf16RowsTest, AreWrittenAsTheSumsRounded) {
  for (const auto& [rows, in, out] : kBf16Sizes) {
    for (const bool with_bias : {true, false}) {
      Product<BFloat16> product(rows, in, out);
      product.with_bias = with_bias;
      const std::vector<BFloat16> packed = product.Packed(GetParam());
      Bf16GemmArgs args = product.Args(packed);
      Matrix<BFloat16> y(rows, out);
      args.y_bf16 = y.data();
      args.y_stride = y.stride();
      PackedGemmCpu(args, GetParam());
      EXPECT_TRUE(y.GuardsIntact());
      EXPECT_TRUE(y == RoundedMatrix(product.Run(GetParam())))
          << rows << " " << in << " " << out;
    }
  }
}

TEST_P(Bf16RowsTest, TakeTheGeluOfTheSums) {
  for (const auto& [rows, in, out] : kBf16Sizes) {
    Product<BFloat16> product(rows, in, out);
    const std::vector<BFloat16> packed = product.Packed(GetParam());
    Bf16GemmArgs args = product.Args(packed);
    Matrix<BFloat16> y(rows, out);
    args.y_bf16 = y.data();
    args.y_stride = y.stride();
    args.gelu = true;
    PackedGemmCpu(args, GetParam());
    EXPECT_TRUE(y.GuardsIntact());
    const Matrix<float> sums = product.Run(GetParam());
    for (int64_t i = 0; i < rows; ++i) {
      for (int o = 0; o < out; ++o) {
        const double v = sums.at(i, o);
        const double expected = v / 2 * (1 + std::erf(v / std::sqrt(2.0)));
        ASSERT_NEAR(static_cast<float>(y.at(i, o)), expected,
                    1e-6 + std::abs(expected) / 256)
            << rows << " " << in << " " << i << " " << o;
      }
    }
  }
}

TEST_P(Bf16RowsTest, AreSlicedInRowsAndOutputs) {
  const Product<BFloat16> product(70, 500, 100);
  const std::vector<BFloat16> packed = product.Packed(GetParam());
  const Matrix<BFloat16> x = RoundedMatrix(product.x);
  Bf16GemmArgs args = product.Args(packed);
  args.x = nullptr;
  args.x_bf16 = x.data();
  args.x_stride = x.stride();
  args.gelu = true;
  Matrix<BFloat16> all(70, 100), parts(70, 100);
  args.y_bf16 = all.data();
  args.y_stride = all.stride();
  PackedGemmCpu(args, GetParam());
  args.y_bf16 = parts.data();
  for (const auto& [begin, end] : {std::pair(0, 1), {1, 30}, {30, 70}}) {
    const Bf16GemmArgs rows = SliceRows(args, begin, end);
    PackedGemmCpu(SliceOutputs(rows, 0, 32), GetParam());
    PackedGemmCpu(SliceOutputs(rows, 32, 100), GetParam());
  }
  EXPECT_TRUE(parts == all);
}

// Rows are rounded the way products round their inputs; memory behind stays.
TEST_P(Bf16RowsTest, RoundToNearest) {
  for (const int count : {0, 1, 15, 31, 32, 33, 100}) {
    Matrix<float> x(1, count + 1);
    std::mt19937 random(3);
    x.FillNormal(random, 0, 1);
    Matrix<BFloat16> y(1, count + 1);
    y.at(0, count) = BFloat16(7.0f);
    RoundToBf16(x.data(), count, y.data(), GetParam());
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(y.at(0, i).bits, BFloat16(x.at(0, i)).bits) << count;
    }
    EXPECT_EQ(static_cast<float>(y.at(0, count)), 7);
  }
}

TEST_P(Bf16RowsTest, PackAsFloatsThatAreRounded) {
  for (const auto& [in, out] : {std::pair(1, 1), {33, 40}, {40, 64}, {7, 31}}) {
    Matrix<float> weights(out, in);
    std::mt19937 random(4);
    weights.FillNormal(random, 0, 1);
    const Matrix<BFloat16> rounded = RoundedMatrix(weights);
    std::vector<BFloat16> by_rows(PackedWeightsSize<BFloat16>(in, out));
    std::vector<BFloat16> packed = by_rows;
    PackWeights<BFloat16>(WeightMatrix{weights.data(), weights.stride(), 1}, in,
                          out, by_rows.data());
    PackWeights(Bf16WeightMatrix{rounded.data(), rounded.stride(), 1}, in, out,
                packed.data(), GetParam());
    const auto same = [](const std::vector<BFloat16>& a,
                         const std::vector<BFloat16>& b) {
      return std::equal(
          a.begin(), a.end(), b.begin(),
          [](BFloat16 x, BFloat16 y) { return x.bits == y.bits; });
    };
    EXPECT_TRUE(same(packed, by_rows)) << in << " " << out;
    // A matrix [in, out] in memory.
    std::vector<BFloat16> columns(PackedWeightsSize<BFloat16>(out, in));
    std::vector<BFloat16> expected = columns;
    PackWeights<BFloat16>(WeightMatrix{weights.data(), 1, weights.stride()},
                          out, in, expected.data());
    PackWeights(Bf16WeightMatrix{rounded.data(), 1, rounded.stride()}, out, in,
                columns.data(), GetParam());
    EXPECT_TRUE(same(columns, expected)) << in << " " << out;
  }
}

// The processor's instruction rounds as the loop in fp32 does. Tiles do not.
TEST(Bf16GemmTest, TheInstructionHasTheBitsOfTheLoop) {
  if (!HasAvx512Bf16()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  if (HasAmxBf16()) GTEST_SKIP() << "products are by AMX";
  for (const auto& [rows, in, out] :
       {std::array{9, 33, 40}, {3, 384, 100}, {250, 7, 16}}) {
    const Product<BFloat16> product(rows, in, out);
    EXPECT_TRUE(product.Run(CpuIsa::kAvx512) == product.Run(CpuIsa::kScalar))
        << in;
  }
}

}  // namespace
}  // namespace sfmamba::kernels
