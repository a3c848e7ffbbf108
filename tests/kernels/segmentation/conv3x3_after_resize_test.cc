#include "kernels/segmentation/conv3x3_after_resize.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

struct Case {
  int in_height, in_width, height, width, channels;
};

// The taps [pixels, 9 * channels] of a map, and a result to which the kernel
// adds.
struct Problem {
  explicit Problem(const Case& c)
      : size(c),
        taps(c.in_height * c.in_width, 9 * c.channels, 0),
        y(c.height * c.width, c.channels, 0) {
    std::mt19937 random(1);
    taps.FillNormal(random, 0, 1);
    y.FillNormal(random, 0, 1);
  }

  Conv3x3AfterResizeArgs Args(float* result) const {
    return {taps.data(), size.in_height, size.in_width, size.channels,
            result,      size.height,    size.width,    0,
            size.height};
  }

  Matrix<float> Run(CpuIsa isa) const {
    Matrix<float> result = y;
    Conv3x3AfterResizeCpu(Args(result.data()), isa);
    EXPECT_TRUE(result.GuardsIntact());
    return result;
  }

  Case size;
  Matrix<float> taps, y;
};

// The two neighbouring input positions from which a bilinear resize from `in`
// to `out` pixels computes output pixel i.
struct Source {
  Source(int in, int out, int i) {
    const double at = std::max((i + 0.5) * in / out - 0.5, 0.0);
    low = std::min(static_cast<int>(at), in - 1);
    high = std::min(low + 1, in - 1);
    fraction = at - low;
  }
  int low, high;
  double fraction;
};

// Returns one value of the definition's result, computed in double.
double Expected(const Problem& problem, int row, int column, int channel) {
  const Case& size = problem.size;
  double sum = problem.y.at(row * size.width + column, channel);
  for (int tap = 0; tap < 9; ++tap) {
    const int r = row + tap / 3 - 1, c = column + tap % 3 - 1;
    if (r < 0 || r >= size.height || c < 0 || c >= size.width) continue;
    const Source y(size.in_height, size.height, r);
    const Source x(size.in_width, size.width, c);
    const auto at = [&](int i, int j) {
      return double{problem.taps.at(i * size.in_width + j,
                                    tap * size.channels + channel)};
    };
    const auto line = [&](int i) {
      return at(i, x.low) * (1 - x.fraction) + at(i, x.high) * x.fraction;
    };
    sum += line(y.low) * (1 - y.fraction) + line(y.high) * y.fraction;
  }
  return sum;
}

class Conv3x3AfterResizeTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isa, Conv3x3AfterResizeTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

TEST_P(Conv3x3AfterResizeTest, IsAConvolutionOfTheResizedMap) {
  for (const Case& size : std::vector<Case>{{1, 1, 1, 1, 1},
                                            {1, 1, 5, 7, 3},
                                            {3, 4, 6, 8, 16},
                                            {4, 5, 7, 9, 9},
                                            {2, 3, 9, 25, 33},
                                            {5, 1, 10, 2, 8},
                                            {4, 6, 4, 6, 7},
                                            {6, 9, 4, 5, 8},
                                            {2, 2, 3, 4, 300}}) {
    const Problem problem(size);
    const Matrix<float> result = problem.Run(GetParam());
    for (int row = 0; row < size.height; ++row) {
      for (int column = 0; column < size.width; ++column) {
        for (int c = 0; c < size.channels; ++c) {
          ASSERT_NEAR(result.at(row * size.width + column, c),
                      Expected(problem, row, column, c), 1e-5)
              << size.in_height << "x" << size.in_width << " to " << size.height
              << "x" << size.width << " at " << row << ", " << column << ", "
              << c;
        }
      }
    }
  }
}

TEST_P(Conv3x3AfterResizeTest, RowsMayBeSharedOut) {
  const Problem problem({4, 5, 7, 9, 20});
  const Matrix<float> whole = problem.Run(GetParam());
  Matrix<float> parts = problem.y;
  for (const auto& [begin, end] :
       std::vector<std::pair<int, int>>{{5, 7}, {0, 1}, {1, 5}}) {
    Conv3x3AfterResizeArgs args = problem.Args(parts.data());
    args.row_begin = begin;
    args.row_end = end;
    Conv3x3AfterResizeCpu(args, GetParam());
  }
  for (int64_t i = 0; i < whole.rows(); ++i) {
    EXPECT_TRUE(parts.RowEquals(i, whole, i)) << i;
  }
}

TEST_P(Conv3x3AfterResizeTest, ANanReachesItsNeighboursOnly) {
  Problem problem({4, 4, 8, 8, 8});
  problem.taps.at(0, 4 * 8) = std::numeric_limits<float>::quiet_NaN();
  const Matrix<float> result = problem.Run(GetParam());
  EXPECT_FALSE(result.RowIsFinite(0));
  EXPECT_TRUE(result.RowIsFinite(7));
  EXPECT_TRUE(result.RowIsFinite(63));
}

}  // namespace
}  // namespace sfmamba::kernels
