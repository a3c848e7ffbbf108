#include "kernels/linear/int8_convolution.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/linear/int8_vl256.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

struct Shape {
  int count, height, width, in, out, kernel, stride;
};

using Convolve = void (*)(const Int8ConvolutionArgs&, int64_t, int64_t);
using QuantizeMaps = void (*)(const QuantizeMapsArgs&, int64_t, int64_t);

void ConvolveCpu(const Int8ConvolutionArgs& args, int64_t begin, int64_t end) {
  Int8ConvolutionCpu(args, begin, end);
}
void QuantizeCpu(const QuantizeMapsArgs& args, int64_t begin, int64_t end) {
  QuantizeMapRowsCpu(args, begin, end);
}

// The kernels of one instruction set. They read weights that are packed for the
// instruction set `packing`.
struct Kernel {
  std::string name;
  CpuIsa packing;
  Convolve convolve;
  QuantizeMaps quantize;
};

// A convolution of random values. The values are the same in each Problem with
// the same shape.
class Problem {
 public:
  explicit Problem(const Shape& shape)
      : x(int64_t{shape.count} * shape.height * shape.width, shape.in, 0),
        weights(shape.out, shape.kernel * shape.kernel * shape.in, 0),
        shape_(shape) {
    std::mt19937 random(1);
    x.FillNormal(random, 0.3f, 1);
    weights.FillNormal(random, 0, 1);
    bias = Normals(random, shape.out, 0, 1);
  }

  int y_height() const {
    return (shape_.height + shape_.stride - 1) / shape_.stride;
  }
  int y_width() const {
    return (shape_.width + shape_.stride - 1) / shape_.stride;
  }

  // Quantizes the maps and convolves them with `kernel`. Both steps compute the
  // rows [0, split) in a first call and the other rows in a second call. Before
  // the convolution, y is 1 everywhere.
  Matrix<float> Run(const Kernel& kernel, int64_t split = 0) {
    const int depth = weights.columns();
    std::vector<int8_t> packed(
        Int8PackedSize(depth, shape_.out, kernel.packing));
    std::vector<float> scales(Int8PackedOutputs(shape_.out, kernel.packing));
    std::vector<int32_t> excess(scales.size());
    const Int8Weights to{packed.data(), scales.data(), excess.data()};
    PackInt8Weights(weights.data(), depth, shape_.out, to, kernel.packing);
    const int64_t size = int64_t{shape_.height} * shape_.width * shape_.in;
    std::vector<float> largest;
    for (int i = 0; i < shape_.count; ++i) {
      largest.push_back(LargestMagnitudeScalar(x.data() + i * size, size));
    }
    const int margin = shape_.kernel / 2;
    const int64_t rows = shape_.count * (shape_.height + 2 * margin);
    values.assign(rows * (shape_.width + 2 * margin) * shape_.in, 0);
    const QuantizeMapsArgs quantize{shape_.count,  shape_.height, shape_.width,
                                    shape_.in,     margin,        x.data(),
                                    values.data(), largest.data()};
    kernel.quantize(quantize, 0, split);
    kernel.quantize(quantize, split, rows);
    const int64_t y_rows = shape_.count * y_height();
    Matrix<float> y(y_rows * y_width(), shape_.out);
    for (int64_t i = 0; i < y.rows(); ++i) {
      for (int o = 0; o < shape_.out; ++o) y.at(i, o) = 1;
    }
    const Int8ConvolutionArgs args{shape_.count,
                                   shape_.height,
                                   shape_.width,
                                   shape_.in,
                                   shape_.out,
                                   shape_.kernel,
                                   shape_.stride,
                                   values.data(),
                                   largest.data(),
                                   to,
                                   bias.data(),
                                   activation,
                                   add,
                                   y.data(),
                                   y.stride()};
    kernel.convolve(args, 0, split);
    kernel.convolve(args, split, y_rows);
    EXPECT_TRUE(y.GuardsIntact());
    return y;
  }

  Matrix<float> x, weights;  // [pixels, in], [out, kernel * kernel * in].
  std::vector<float> bias;
  Int8Activation activation = Int8Activation::kNone;
  bool add = false;
  std::vector<uint8_t> values;  // The quantized values of the last run.

 private:
  const Shape shape_;
};

// Returns the kernels that a model uses on this CPU.
Kernel Best() { return {"Best", ActiveCpuIsa(), ConvolveCpu, QuantizeCpu}; }

Kernel Scalar(CpuIsa packing) {
  return {"Scalar", packing,
          packing == CpuIsa::kAvx512
              ? [](const Int8ConvolutionArgs& args, int64_t begin,
                   int64_t end) {
                  Int8ConvolutionScalar(args, begin, end, CpuIsa::kAvx512);
                }
              : [](const Int8ConvolutionArgs& args, int64_t begin,
                   int64_t end) {
                  Int8ConvolutionScalar(args, begin, end, CpuIsa::kAvx2);
                },
          QuantizeMapRowsScalar};
}

std::vector<Kernel> Kernels() {
  std::vector<Kernel> kernels;
  if (HasAvxVnni()) {
    kernels.push_back({"AvxVnni", CpuIsa::kAvx2, Int8ConvolutionAvxVnni,
                       QuantizeMapRowsAvxVnni});
  }
  if (HasAvx512Vnni()) {
    kernels.push_back({"Avx512", CpuIsa::kAvx512, Int8ConvolutionAvx512,
                       QuantizeMapRowsAvx512});
    kernels.push_back(
        {"Vl256", CpuIsa::kAvx2, Int8ConvolutionVl256, QuantizeMapRowsVl256});
  }
  return kernels;
}

class Int8ConvolutionKernelTest : public testing::TestWithParam<Kernel> {};

// The results must have the same bits as the scalar loop's. Only with GELU,
// they may differ by rounding.
TEST_P(Int8ConvolutionKernelTest, EqualsTheScalarLoop) {
  for (const Shape& shape : std::vector<Shape>{{1, 1, 1, 4, 1, 3, 1},
                                               {2, 5, 17, 12, 33, 3, 1},
                                               {2, 5, 16, 12, 48, 3, 2},
                                               {1, 6, 9, 8, 7, 5, 2},
                                               {3, 4, 3, 20, 65, 1, 1}}) {
    Problem problem(shape);
    for (const bool add : {false, true}) {
      problem.add = add;
      const Matrix<float> y = problem.Run(GetParam());
      const std::vector<uint8_t> values = problem.values;
      ASSERT_TRUE(y == problem.Run(Scalar(GetParam().packing)));
      ASSERT_EQ(values, problem.values);
    }
    problem.add = false;
    for (const Int8Activation activation :
         {Int8Activation::kRelu, Int8Activation::kRelu6}) {
      problem.activation = activation;
      ASSERT_TRUE(problem.Run(GetParam()) ==
                  problem.Run(Scalar(GetParam().packing)));
    }
    problem.activation = Int8Activation::kGeluTanh;
    const Matrix<float> y = problem.Run(GetParam());
    ExpectClose(y, ToDouble(problem.Run(Scalar(GetParam().packing))), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Int8ConvolutionKernelTest,
                         testing::ValuesIn(Kernels()),
                         [](const testing::TestParamInfo<Kernel>& info) {
                           return info.param.name;
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Int8ConvolutionKernelTest);

constexpr Shape kShape = {3, 7, 9, 16, 40, 3, 1};

TEST(Int8ConvolutionTest, IsNearTheConvolution) {
  Problem problem(kShape);
  const Matrix<float> y = problem.Run(Best());
  double squares = 0, errors = 0;
  for (int64_t i = 0; i < y.rows(); ++i) {
    const int64_t map = i / 63, row = i % 63 / 9, column = i % 9;
    for (int o = 0; o < 40; ++o) {
      double sum = problem.bias[o];
      for (int k = 0; k < 9 * 16; ++k) {
        const int64_t in_row = row + k / 48 - 1;
        const int64_t in_column = column + k / 16 % 3 - 1;
        if (in_row < 0 || in_row > 6 || in_column < 0 || in_column > 8) {
          continue;
        }
        sum += double{problem.weights.at(o, k)} *
               problem.x.at(map * 63 + in_row * 9 + in_column, k % 16);
      }
      squares += sum * sum;
      errors += std::pow(y.at(i, o) - sum, 2);
    }
  }
  EXPECT_LE(std::sqrt(errors / squares), 0.015);
}

TEST(Int8ConvolutionTest, PartsOfTheRowsAreTheWhole) {
  Problem problem(kShape);
  const Matrix<float> whole = problem.Run(Best());
  EXPECT_TRUE(problem.Run(Best(), /*split=*/10) == whole);
}

TEST(Int8ConvolutionTest, AMapDoesNotDependOnOthers) {
  Problem problem(kShape);
  const Matrix<float> clean = problem.Run(Best());
  for (int c = 0; c < 16; ++c) problem.x.at(63, c) *= 100;
  const Matrix<float> y = problem.Run(Best());
  for (int64_t i = 0; i < y.rows(); ++i) {
    EXPECT_EQ(y.RowEquals(i, clean, i), i / 63 != 1) << i;
  }
}

TEST(Int8ConvolutionTest, ZerosGiveTheBias) {
  Problem problem(kShape);
  for (int64_t i = 0; i < 63; ++i) {
    for (int c = 0; c < 16; ++c) problem.x.at(i, c) = 0;
  }
  const Matrix<float> y = problem.Run(Best());
  for (int o = 0; o < 40; ++o) EXPECT_EQ(y.at(30, o), problem.bias[o]);
}

TEST(Int8ConvolutionTest, AMapThatIsNotFiniteStaysSo) {
  for (const float poison :
       {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    for (const Int8Activation activation :
         {Int8Activation::kNone, Int8Activation::kRelu6,
          Int8Activation::kGeluTanh}) {
      Problem problem(kShape);
      problem.activation = activation;
      const Matrix<float> clean = problem.Run(Best());
      problem.x.at(70, 3) = poison;
      const Matrix<float> y = problem.Run(Best());
      for (int64_t i = 0; i < y.rows(); ++i) {
        if (i / 63 != 1) {
          EXPECT_TRUE(y.RowEquals(i, clean, i)) << i;
        } else {
          EXPECT_TRUE(std::isnan(y.at(i, 7))) << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels
