#include "kernels/linear/depthwise_convolution.h"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

// Random maps, stored as [count * height * width, channels], and random
// weights.
struct Problem {
  Problem(int count, int height, int width, int channels, int kernel,
          int stride)
      : x(int64_t{count} * height * width, channels, /*padding=*/0) {
    std::mt19937 random(1);
    x.FillNormal(random, 0.2f, 1);
    weights = Normals(random, kernel * kernel * channels, 0, 1);
    bias = Normals(random, channels, 0, 1);
    args.count = count;
    args.height = height;
    args.width = width;
    args.channels = channels;
    args.kernel = kernel;
    args.stride = stride;
    args.low = -std::numeric_limits<float>::infinity();
    args.high = std::numeric_limits<float>::infinity();
  }

  int64_t Columns() const {
    return (args.width + args.stride - 1) / args.stride;
  }

  // Computes the rows in parts of size `part`.
  Matrix<float> Run(CpuIsa isa, int64_t part = 1 << 20) {
    const int64_t rows = DepthwiseConvolutionRows(args);
    Matrix<float> y(rows * Columns(), args.channels, /*padding=*/0);
    args.x = x.data();
    args.weight = weights.data();
    args.bias = bias.data();
    args.y = y.data();
    for (int64_t begin = 0; begin < rows; begin += part) {
      DepthwiseConvolutionCpu(args, begin, std::min(rows, begin + part), isa);
    }
    EXPECT_TRUE(y.GuardsIntact());
    return y;
  }

  // Returns the plain sums, computed in double.
  Matrix<double> Reference() const {
    const int64_t columns = Columns();
    const int64_t rows = (args.height + args.stride - 1) / args.stride;
    Matrix<double> y(args.count * rows * columns, args.channels);
    for (int64_t i = 0; i < y.rows(); ++i) {
      const int64_t map = i / (rows * columns);
      const int64_t top = i / columns % rows * args.stride - args.kernel / 2;
      const int64_t left = i % columns * args.stride - args.kernel / 2;
      for (int c = 0; c < args.channels; ++c) {
        double sum = bias[c];
        for (int t = 0; t < args.kernel * args.kernel; ++t) {
          const int64_t row = top + t / args.kernel;
          const int64_t column = left + t % args.kernel;
          if (row < 0 || row >= args.height) continue;
          if (column < 0 || column >= args.width) continue;
          sum +=
              double{x.at((map * args.height + row) * args.width + column, c)} *
              weights[t * args.channels + c];
        }
        y.at(i, c) = std::clamp<double>(sum, args.low, args.high);
      }
    }
    return y;
  }

  DepthwiseConvolutionArgs args{};
  Matrix<float> x;
  std::vector<float> weights;  // [kernel, kernel, channels]
  std::vector<float> bias;
};

class DepthwiseConvolutionTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isas, DepthwiseConvolutionTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

TEST_P(DepthwiseConvolutionTest, IsThePlainSum) {
  for (const auto& [height, width] :
       {std::pair{1, 1}, {4, 4}, {7, 7}, {3, 13}, {14, 6}}) {
    for (const int kernel : {1, 3, 5}) {
      for (const int stride : {1, 2, 3}) {
        for (const int channels : {5, 48}) {
          Problem problem(2, height, width, channels, kernel, stride);
          SCOPED_TRACE(testing::Message() << height << "x" << width << ", "
                                          << channels << " channels, kernel "
                                          << kernel << ", stride " << stride);
          ExpectClose(problem.Run(GetParam()), problem.Reference(), 1e-5);
        }
      }
    }
  }
}

TEST_P(DepthwiseConvolutionTest, ClampsSumsWithBias) {
  Problem problem(1, 9, 15, 20, 3, 1);
  problem.args.low = 0;
  problem.args.high = 1;
  ExpectClose(problem.Run(GetParam()), problem.Reference(), 1e-5);
}

TEST_P(DepthwiseConvolutionTest, PartsOfTheRowsHaveTheSameBits) {
  Problem problem(2, 17, 31, 24, 5, 2);
  const Matrix<float> whole = problem.Run(GetParam());
  for (const int64_t part : {1, 7}) {
    EXPECT_TRUE(problem.Run(GetParam(), part) == whole) << part;
  }
}

TEST_P(DepthwiseConvolutionTest, ANanStaysWithWhatReadsItAndIsNotClamped) {
  Problem problem(3, 7, 12, 8, 3, 1);
  problem.args.low = 0;
  problem.args.high = 6;
  const Matrix<float> clean = problem.Run(GetParam());
  problem.x.at(84 + 3 * 12 + 5, 3) = std::numeric_limits<float>::quiet_NaN();
  const Matrix<float> dirty = problem.Run(GetParam());
  for (int64_t i = 0; i < dirty.rows(); ++i) {
    const int64_t row = i % 84 / 12, column = i % 12;
    const bool reads =
        i / 84 == 1 && row >= 2 && row <= 4 && column >= 4 && column <= 6;
    EXPECT_EQ(dirty.RowEquals(i, clean, i), !reads) << i;
    EXPECT_EQ(dirty.RowIsFinite(i), !reads) << i;
  }
}

}  // namespace
}  // namespace sfmamba::kernels
