#include "kernels/linear/packed_gemm.h"

#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

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

  std::vector<float> Packed(CpuIsa isa) const {
    std::vector<float> packed(PackedWeightsSize(in(), out(), isa));
    PackWeights(weights.data(), in(), out(), packed.data(), isa);
    return packed;
  }

  // All but y.
  PackedGemmArgs Args(const std::vector<float>& packed) const {
    PackedGemmArgs args{};
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
    const std::vector<float> packed = Packed(isa);
    PackedGemmArgs args = Args(packed);
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
          sum += double{x.at(i, k)} * weights.at(o, k);
        }
        y.at(i, o) = sum;
      }
    }
    return y;
  }

  Matrix<float> x, weights;
  std::vector<float> bias;
  bool with_bias = true;
};

class PackedGemmTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isa, PackedGemmTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

TEST_P(PackedGemmTest, AgreesWithFp64) {
  for (int rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 51}) {
    for (int in : {1, 5, 20, 320, 385}) {
      for (int out : {1, 8, 15, 16, 17, 32, 36, 100}) {
        const Product product(rows, in, out);
        ExpectClose(product.Run(GetParam()), product.Reference(), 2e-6);
      }
    }
  }
}

// More than one block of rows and of inputs.
TEST_P(PackedGemmTest, AgreesWithFp64InBlocks) {
  for (const auto& [rows, in, out] :
       {std::array{241, 30, 20}, {500, 800, 33}, {7, 2560, 40}}) {
    const Product product(rows, in, out);
    ExpectClose(product.Run(GetParam()), product.Reference(), 5e-6);
  }
}

TEST_P(PackedGemmTest, TheBiasIsOptional) {
  for (int out : {32, 36}) {
    Product product(9, 400, out);
    product.with_bias = false;
    ExpectClose(product.Run(GetParam()), product.Reference(), 2e-6);
  }
}

TEST_P(PackedGemmTest, Adds) {
  for (int out : {5, 32, 36}) {
    for (int in : {20, 800}) {
      const Product product(9, in, out);
      Matrix<float> y(9, out);
      std::mt19937 random(2);
      y.FillNormal(random, 0, 10);
      Matrix<double> expected = product.Reference();
      for (int i = 0; i < 9; ++i) {
        for (int o = 0; o < out; ++o) expected.at(i, o) += y.at(i, o);
      }
      const std::vector<float> packed = product.Packed(GetParam());
      PackedGemmArgs args = product.Args(packed);
      args.add = true;
      args.y = y.data();
      args.y_stride = y.stride();
      PackedGemmCpu(args, GetParam());
      EXPECT_TRUE(y.GuardsIntact());
      ExpectClose(y, expected, 2e-6);
    }
  }
}

// In every count of rows and at every place among them.
TEST_P(PackedGemmTest, ARowHasTheSameBitsBesideAnyOthers) {
  const Product product(300, 500, 36);
  const Matrix<float> all = product.Run(GetParam());
  const std::vector<float> packed = product.Packed(GetParam());
  for (int64_t begin : {0, 1, 7, 100, 299}) {
    for (int64_t rows = 1; rows <= 25 && begin + rows <= 300; ++rows) {
      Matrix<float> y(300, 36);
      PackedGemmArgs args = product.Args(packed);
      args.y = y.data();
      args.y_stride = y.stride();
      PackedGemmCpu(SliceRows(args, begin, begin + rows), GetParam());
      for (int64_t i = 0; i < rows; ++i) {
        ASSERT_TRUE(y.RowEquals(begin + i, all, begin + i))
            << begin << " " << rows << " " << i;
      }
    }
  }
}

TEST_P(PackedGemmTest, PartsOfTheOutputsHaveTheSameBits) {
  const int64_t width = PanelWidth(GetParam());
  const Product product(10, 500, static_cast<int>(4 * width + 3));
  const Matrix<float> all = product.Run(GetParam());
  Matrix<float> parts(10, product.out());
  const std::vector<float> packed = product.Packed(GetParam());
  PackedGemmArgs args = product.Args(packed);
  args.y = parts.data();
  args.y_stride = parts.stride();
  for (const auto& [begin, end] :
       {std::pair<int64_t, int64_t>(3 * width, product.out()),
        {0, width},
        {width, 3 * width}}) {
    PackedGemmCpu(SliceOutputs(args, begin, end), GetParam());
  }
  EXPECT_TRUE(parts == all);
}

TEST_P(PackedGemmTest, NoRowsAreNoWork) {
  const Product product(0, 20, 20);
  product.Run(GetParam());
}

TEST_P(PackedGemmTest, PoisonStaysInItsRow) {
  for (float poison : {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity()}) {
    Product product(13, 20, 36);
    const Matrix<float> clean = product.Run(GetParam());
    product.x.at(4, 3) = poison;
    const Matrix<float> y = product.Run(GetParam());
    for (int i = 0; i < 13; ++i) EXPECT_EQ(y.RowEquals(i, clean, i), i != 4);
    EXPECT_FALSE(y.RowIsFinite(4));
  }
}

}  // namespace
}  // namespace sfmamba::kernels
