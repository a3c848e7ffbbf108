#include "kernels/linear/packed_gemm.h"

#include <array>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/linear/gelu.h"
#include "tests/kernels/linear/product.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

template <typename T>
class PackedGemmTest : public testing::Test {};

// A weight type and an instruction set, as one type parameter for typed tests.
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

// Each size needs several blocks of rows, several blocks of inputs, or both.
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

// Multiplies slices of 1 to 25 rows. Each row of a slice must have the same
// bits as in the product of all rows.
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

// The AVX512-BF16 instruction rounds its sums as the scalar loop does. AMX
// tiles round them differently, so the test is skipped on a CPU with AMX.
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
