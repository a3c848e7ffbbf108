// Tests products whose input or output rows are bf16.
#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/linear/gelu.h"
#include "kernels/linear/packed_gemm.h"
#include "tests/kernels/linear/product.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

class Bf16RowsTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isa, Bf16RowsTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

// {rows, inputs, outputs}. The inputs and the rows form one block or several.
// The last panel of outputs is complete or partial.
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

// After the last row, the memory contains rows of NaN, until the number of rows
// is a multiple of 16.
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

// RoundToBf16() must round a row as a product rounds its inputs. The memory
// after the row must not change.
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
    // This matrix is [in, out] in memory.
    std::vector<BFloat16> columns(PackedWeightsSize<BFloat16>(out, in));
    std::vector<BFloat16> expected = columns;
    PackWeights<BFloat16>(WeightMatrix{weights.data(), 1, weights.stride()},
                          out, in, expected.data());
    PackWeights(Bf16WeightMatrix{rounded.data(), 1, rounded.stride()}, out, in,
                columns.data(), GetParam());
    EXPECT_TRUE(same(columns, expected)) << in << " " << out;
  }
}

}  // namespace
}  // namespace sfmamba::kernels
