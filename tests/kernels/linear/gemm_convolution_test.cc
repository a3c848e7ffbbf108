#include "kernels/linear/gemm_convolution.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/linear/packed_gemm.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

// Random maps, stored as [count * height * width, channels], and random
// weights. If W is BFloat16, both are rounded to bf16.
template <typename W = float>
struct Problem {
  Problem(int count, int height, int width, int in, int out, int kernel,
          int stride)
      : x(int64_t{count} * height * width, in, /*padding=*/0) {
    std::mt19937 random(1);
    x.FillNormal(random, 0.2f, 1);
    weights = Normals(random, out * kernel * kernel * in, 0, 1);
    for (float& weight : weights) weight = Rounded(weight);
    for (int64_t i = 0; i < x.rows(); ++i) {
      for (int c = 0; c < in; ++c) x.at(i, c) = Rounded(x.at(i, c));
    }
    bias = Normals(random, out, 0, 1);
    args.count = count;
    args.height = height;
    args.width = width;
    args.in = in;
    args.out = args.y_stride = out;
    args.kernel = kernel;
    args.stride = stride;
    args.low = -std::numeric_limits<float>::infinity();
    args.high = std::numeric_limits<float>::infinity();
  }

  std::vector<W> Packed(CpuIsa isa) const {
    const ConvolutionRuns runs = RunsOf<W>(args.in, args.kernel, isa);
    std::vector<float> rows(args.out * runs.depth());
    for (int64_t i = 0; i < args.out * runs.runs; ++i) {
      std::copy_n(weights.data() + i * runs.length, runs.length,
                  rows.data() + i * runs.packed_length);
    }
    std::vector<W> packed(PackedWeightsSize<W>(runs.depth(), args.out, isa));
    PackWeights(rows.data(), runs.depth(), args.out, packed.data(), isa);
    return packed;
  }

  // Calls the kernel for `part` output pixels at a time, with y as its output.
  void Add(Matrix<float>& y, CpuIsa isa, int64_t part = 1 << 20) {
    const std::vector<W> packed = Packed(isa);
    args.x = x.data();
    args.weights = packed.data();
    args.bias = bias.data();
    args.y = y.data();
    const int64_t pixels = GemmConvolutionPixels(args);
    for (int64_t begin = 0; begin < pixels; begin += part) {
      GemmConvolutionCpu(args, begin, std::min(pixels, begin + part), isa);
    }
    EXPECT_TRUE(y.GuardsIntact());
  }

  Matrix<float> Output() const {
    return Matrix<float>(GemmConvolutionPixels(args), args.out, /*padding=*/0);
  }

  Matrix<float> Run(CpuIsa isa, int64_t part = 1 << 20) {
    Matrix<float> y = Output();
    Add(y, isa, part);
    return y;
  }

  // Returns the results of the definition, summed in double.
  Matrix<double> Reference() const {
    const int rows = (args.height + args.stride - 1) / args.stride;
    const int columns = (args.width + args.stride - 1) / args.stride;
    Matrix<double> y(GemmConvolutionPixels(args), args.out);
    for (int64_t i = 0; i < y.rows(); ++i) {
      const int64_t map = i / (rows * columns);
      const int row = i / columns % rows * args.stride - args.kernel / 2;
      const int column = i % columns * args.stride - args.kernel / 2;
      for (int o = 0; o < args.out; ++o) {
        double sum = bias[o];
        for (int t = 0; t < args.kernel * args.kernel; ++t) {
          const int r = row + t / args.kernel, c = column + t % args.kernel;
          if (r < 0 || r >= args.height || c < 0 || c >= args.width) continue;
          for (int k = 0; k < args.in; ++k) {
            sum +=
                double{x.at((map * args.height + r) * args.width + c, k)} *
                weights[(int64_t{o} * args.kernel * args.kernel + t) * args.in +
                        k];
          }
        }
        y.at(i, o) = std::clamp<double>(sum, args.low, args.high);
      }
    }
    return y;
  }

  static float Rounded(float value) {
    return std::is_same_v<W, BFloat16> ? static_cast<float>(BFloat16(value))
                                       : value;
  }

  GemmConvolutionArgs<W> args{};
  Matrix<float> x;
  std::vector<float> weights;  // [out, kernel, kernel, in]
  std::vector<float> bias;
};

class GemmConvolutionTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isas, GemmConvolutionTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

TEST_P(GemmConvolutionTest, IsThePlainSum) {
  for (const auto& [height, width] :
       {std::pair{1, 1}, {4, 4}, {7, 7}, {3, 13}, {14, 6}}) {
    for (const int kernel : {1, 3, 5}) {
      for (const int stride : {1, 2, 3}) {
        Problem<> problem(2, height, width, 5, 33, kernel, stride);
        SCOPED_TRACE(testing::Message() << height << "x" << width << ", kernel "
                                        << kernel << ", stride " << stride);
        ExpectClose(problem.Run(GetParam()), problem.Reference(), 1e-5);
      }
    }
  }
}

TEST_P(GemmConvolutionTest, OfSplitFloatsItIsThePlainSum) {
  for (const int in : {3, 40}) {
    for (const int kernel : {1, 3}) {
      for (const int stride : {1, 2}) {
        Problem<SplitFloat> problem(2, 14, 6, in, 33, kernel, stride);
        SCOPED_TRACE(testing::Message() << in << " channels, kernel " << kernel
                                        << ", stride " << stride);
        ExpectClose(problem.Run(GetParam()), problem.Reference(), 1e-5);
        EXPECT_TRUE(problem.Run(GetParam(), /*part=*/7) ==
                    problem.Run(GetParam()));
      }
    }
  }
}

// The cases have few and many channels.
TEST_P(GemmConvolutionTest, InBf16ItIsThePlainSumToo) {
  for (const int in : {3, 5, 12, 40, 64}) {
    for (const int kernel : {1, 3, 5}) {
      for (const int stride : {1, 2, 3}) {
        for (const auto& [height, width] :
             {std::pair{14, 6}, {1, 1}, {7, 7}, {3, 40}}) {
          Problem<BFloat16> problem(2, height, width, in, 33, kernel, stride);
          SCOPED_TRACE(testing::Message() << height << "x" << width << ", "
                                          << in << " channels, kernel "
                                          << kernel << ", stride " << stride);
          ExpectClose(problem.Run(GetParam()), problem.Reference(), 1e-5);
        }
      }
    }
  }
}

// Inputs and outputs are bf16. The activation is computed in fp32 before the
// outputs are rounded.
TEST_P(GemmConvolutionTest, InBf16ResultsMayBeRoundedAndInputsBeBf16) {
  for (const int in : {5, 40}) {
    for (const bool gelu : {false, true}) {
      Problem<BFloat16> problem(2, 9, 20, in, 40, 3, 1);
      problem.args.gelu = gelu;
      if (!gelu) problem.args.low = 0;
      const Matrix<float> expected = problem.Run(GetParam());
      std::vector<BFloat16> x(problem.x.rows() * in);
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = BFloat16(problem.x.data()[i]);
      std::vector<BFloat16> y(expected.rows() * 40);
      problem.args.x_bf16 = x.data();
      problem.args.y_bf16 = y.data();
      Matrix<float> unused = problem.Output();
      problem.Add(unused, GetParam(), /*part=*/100);
      for (int64_t i = 0; i < expected.rows(); ++i) {
        for (int c = 0; c < 40; ++c) {
          ASSERT_EQ(y[i * 40 + c].bits, BFloat16(expected.at(i, c)).bits)
              << in << " " << gelu << " " << i << " " << c;
        }
      }
    }
  }
}

TEST_P(GemmConvolutionTest, GeluFollowsTheSums) {
  for (const int in : {5, 40}) {
    Problem<BFloat16> problem(1, 9, 20, in, 33, 3, 1);
    const Matrix<float> sums = problem.Run(GetParam());
    problem.args.gelu = true;
    const Matrix<float> y = problem.Run(GetParam());
    for (int64_t i = 0; i < y.rows(); ++i) {
      for (int c = 0; c < 33; ++c) {
        const double v = sums.at(i, c);
        const double inner = 0.7978845608 * (v + 0.044715 * v * v * v);
        ASSERT_NEAR(y.at(i, c), v / 2 * (1 + std::tanh(inner)),
                    1e-5 + 1e-6 * std::abs(v));
      }
    }
  }
}

TEST_P(GemmConvolutionTest, InBf16PartsHaveTheSameBitsAndANanStays) {
  for (const int in : {3, 40}) {
    Problem<BFloat16> parts(3, 45, 31, in, 9, 3, 2);
    const Matrix<float> whole = parts.Run(GetParam());
    for (const int64_t part : {1, 7, 300}) {
      EXPECT_TRUE(parts.Run(GetParam(), part) == whole) << in << " " << part;
    }
  }
  Problem<BFloat16> problem(3, 45, 31, 40, 9, 3, 2);
  problem.args.low = 0;
  const Matrix<float> whole = problem.Run(GetParam());
  // The NaN is in row 3 and column 3 of the second map. An output pixel reads
  // it if its row is 1 or 2 and its column is 1 or 2.
  problem.x.at(45 * 31 + 3 * 31 + 3, 39) =
      std::numeric_limits<float>::quiet_NaN();
  const Matrix<float> dirty = problem.Run(GetParam());
  for (int64_t i = 0; i < dirty.rows(); ++i) {
    const int64_t row = i % (23 * 16) / 16, column = i % 16;
    const bool reads = i / (23 * 16) == 1 && (row == 1 || row == 2) &&
                       (column == 1 || column == 2);
    EXPECT_EQ(dirty.RowEquals(i, whole, i), !reads) << i;
    EXPECT_EQ(dirty.RowIsFinite(i), !reads) << i;
  }
}

TEST_P(GemmConvolutionTest, InBf16ANanOfFewChannelsStaysInItsMap) {
  Problem<BFloat16> problem(3, 45, 31, 3, 9, 3, 2);
  const Matrix<float> clean = problem.Run(GetParam());
  for (int64_t i = 45 * 31; i < 2 * 45 * 31; ++i) {
    problem.x.at(i, 1) = std::numeric_limits<float>::quiet_NaN();
  }
  const Matrix<float> dirty = problem.Run(GetParam());
  for (int64_t i = 0; i < dirty.rows(); ++i) {
    EXPECT_EQ(dirty.RowEquals(i, clean, i), i / (23 * 16) != 1) << i;
  }
  // A NaN that remains in the thread's scratch memory must not change the next
  // result.
  Problem<BFloat16> next(1, 7, 9, 3, 9, 3, 2);
  EXPECT_TRUE(next.Run(GetParam()).RowIsFinite(4 * 5 - 1));
}

TEST_P(GemmConvolutionTest, ClampsSumsWithBias) {
  Problem<> problem(1, 9, 5, 8, 20, 3, 2);
  problem.args.low = 0;
  problem.args.high = 6;
  ExpectClose(problem.Run(GetParam()), problem.Reference(), 1e-5);
}

TEST_P(GemmConvolutionTest, AddsWhatItWouldWrite) {
  Problem<> problem(2, 9, 5, 8, 21, 3, 1);
  const Matrix<float> written = problem.Run(GetParam());
  Matrix<float> y = problem.Output();
  std::mt19937 random(2);
  y.FillNormal(random, 0, 1);
  const Matrix<float> before = y;
  problem.args.add = true;
  problem.Add(y, GetParam());
  for (int64_t i = 0; i < y.rows(); ++i) {
    for (int c = 0; c < problem.args.out; ++c) {
      ASSERT_EQ(y.at(i, c), before.at(i, c) + written.at(i, c));
    }
  }
}

// The kernel computes the output pixels in blocks. Each size of the parts
// divides the pixels into other blocks.
TEST_P(GemmConvolutionTest, PartsOfThePixelsHaveTheSameBits) {
  Problem<> problem(2, 45, 31, 6, 9, 3, 2);
  const Matrix<float> whole = problem.Run(GetParam());
  for (const int64_t part : {1, 7, 300}) {
    EXPECT_TRUE(problem.Run(GetParam(), part) == whole) << part;
  }
}

// Computes the output channels [0, 64) and [64, 100) by two calls. Expects the
// same bits as from one call for all channels.
template <typename W>
void ExpectSameBitsInParts(CpuIsa isa) {
  for (const int kernel : {1, 3}) {
    Problem<W> problem(1, 14, 14, 24, 100, kernel, 2);
    problem.args.low = 0;
    const Matrix<float> whole = problem.Run(isa);
    const std::vector<W> packed = problem.Packed(isa);
    Matrix<float> parts = problem.Output();
    GemmConvolutionArgs<W> args = problem.args;
    args.weights = packed.data();
    args.y = parts.data();
    for (const auto& [begin, end] : {std::pair(0, 64), {64, 100}}) {
      GemmConvolutionCpu(SliceOutputs(args, begin, end, isa), 0, 49, isa);
    }
    EXPECT_TRUE(parts == whole) << kernel;
  }
}

TEST_P(GemmConvolutionTest, PartsOfTheOutputsHaveTheSameBits) {
  ExpectSameBitsInParts<float>(GetParam());
  ExpectSameBitsInParts<BFloat16>(GetParam());
  ExpectSameBitsInParts<SplitFloat>(GetParam());
}

TEST_P(GemmConvolutionTest, ANanStaysWithThePixelsThatReadItAndIsNotClamped) {
  Problem<> problem(3, 7, 7, 8, 8, 3, 2);
  problem.args.low = 0;
  const Matrix<float> clean = problem.Run(GetParam());
  problem.x.at(49 + 24, 3) = std::numeric_limits<float>::quiet_NaN();
  const Matrix<float> dirty = problem.Run(GetParam());
  for (int64_t i = 0; i < dirty.rows(); ++i) {
    // The NaN is in row 3 and column 3 of the second map. An output pixel reads
    // it if its row is 1 or 2 and its column is 1 or 2.
    const int64_t row = i % 16 / 4, column = i % 4;
    const bool reads =
        i / 16 == 1 && (row == 1 || row == 2) && (column == 1 || column == 2);
    EXPECT_EQ(dirty.RowEquals(i, clean, i), !reads) << i;
    EXPECT_EQ(dirty.RowIsFinite(i), !reads) << i;
  }
}

}  // namespace
}  // namespace sfmamba::kernels
