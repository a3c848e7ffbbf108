#include "kernels/linear/winograd_conv3x3.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

void Convolve(const WinogradConv3x3Args& args, int64_t begin, int64_t end,
              CpuIsa isa) {
  // The scratch memory is filled with NaN, so that a read before a write
  // changes the result.
  std::vector<float> scratch(WinogradScratchSize(args, end - begin),
                             std::nanf(""));
  WinogradConv3x3Cpu(args, begin, end, scratch.data(), isa);
}

// Random maps, stored as [count * height * width, channels], and random
// weights.
struct Problem {
  Problem(int side, int count, int height, int width, int in, int out)
      : side(side),
        count(count),
        height(height),
        width(width),
        in(in),
        out(out),
        x(int64_t{count} * height * width, in, /*padding=*/0) {
    std::mt19937 random(1);
    x.FillNormal(random, 0.2f, 1);
    weights = Normals(random, out * in * 9, 0, 1);
    bias = Normals(random, out, 0, 1);
  }

  Matrix<float> Output() const {
    return Matrix<float>(x.rows(), out, /*padding=*/0);
  }

  std::vector<float> Packed(CpuIsa isa) const {
    std::vector<float> packed(WinogradWeightsSize(side, in, out, isa));
    PackWinogradWeights(weights.data(), side, in, out, packed.data(), isa);
    return packed;
  }

  WinogradConv3x3Args Args(const std::vector<float>& packed,
                           Matrix<float>& y) const {
    return {side,        count,      height,        width,
            in,          out,        x.data(),      packed.data(),
            bias.data(), activation, /*add=*/false, y.data()};
  }

  Matrix<float> Run(CpuIsa isa) const {
    Matrix<float> y = Output();
    const std::vector<float> packed = Packed(isa);
    const WinogradConv3x3Args args = Args(packed, y);
    Convolve(args, 0, WinogradTiles(args), isa);
    EXPECT_TRUE(y.GuardsIntact());
    return y;
  }

  // Returns the plain sum of one output, computed in double.
  double Sum(int map, int row, int column, int o) const {
    double sum = bias[o];
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        const int r = row + i - 1, c = column + j - 1;
        if (r < 0 || r >= height || c < 0 || c >= width) continue;
        for (int k = 0; k < in; ++k) {
          sum += double{x.at((int64_t{map} * height + r) * width + c, k)} *
                 weights[(o * in + k) * 9 + 3 * i + j];
        }
      }
    }
    switch (activation) {
      case WinogradActivation::kNone:
        return sum;
      case WinogradActivation::kRelu:
        return std::fmax(sum, 0.0);
      case WinogradActivation::kGeluTanh:
        return sum / 2 *
               (1 + std::tanh(std::sqrt(2 / M_PI) *
                              (sum + 0.044715 * sum * sum * sum)));
    }
    return sum;
  }

  Matrix<double> Reference() const {
    Matrix<double> y(x.rows(), out);
    for (int64_t i = 0; i < y.rows(); ++i) {
      for (int o = 0; o < out; ++o) {
        y.at(i, o) =
            Sum(i / (height * width), i / width % height, i % width, o);
      }
    }
    return y;
  }

  int side, count, height, width, in, out;
  Matrix<float> x;
  std::vector<float> weights, bias;
  WinogradActivation activation = WinogradActivation::kNone;
};

// An instruction set and the side of its tiles.
class WinogradConv3x3Test
    : public testing::TestWithParam<std::tuple<CpuIsa, int>> {
 protected:
  CpuIsa isa() const { return std::get<0>(GetParam()); }
  int side() const { return std::get<1>(GetParam()); }
  // Returns the largest error allowed, relative to the largest output.
  double tolerance() const { return side() == 4 ? 1e-5 : 1e-4; }
};

INSTANTIATE_TEST_SUITE_P(
    Isas, WinogradConv3x3Test,
    testing::Combine(testing::ValuesIn(SupportedCpuIsas()),
                     testing::Values(4, 7)),
    [](const testing::TestParamInfo<std::tuple<CpuIsa, int>>& info) {
      return std::string(CpuIsaName(std::get<0>(info.param))) + "By" +
             std::to_string(std::get<1>(info.param));
    });

TEST(WinogradSideTest, IsSevenForManyTilesThatFit) {
  EXPECT_EQ(WinogradSide(50, 7, 7, 256, 256), 7);
  EXPECT_EQ(WinogradSide(10, 14, 14, 256, 256), 7);
  EXPECT_EQ(WinogradSide(1, 200, 336, 256, 256), 7);
  EXPECT_EQ(WinogradSide(50, 8, 8, 256, 256), 4);   // 7 x 7 would fill a third.
  EXPECT_EQ(WinogradSide(1, 14, 14, 256, 256), 4);  // 4 tiles.
  EXPECT_EQ(WinogradSide(1, 128, 171, 512, 512), 4);  // 81 MiB of weights.
  EXPECT_EQ(WinogradSide(1, 0, 0, 256, 256), 4);      // The size is unknown.
}

TEST_P(WinogradConv3x3Test, IsThePlainSum) {
  for (const auto& [height, width] :
       {std::pair{1, 1}, {4, 4}, {7, 7}, {3, 13}, {14, 6}, {15, 22}}) {
    for (const auto& [in, out] :
         {std::pair{1, 1}, {12, 5}, {16, 16}, {33, 40}}) {
      const Problem problem(side(), 2, height, width, in, out);
      SCOPED_TRACE(testing::Message() << height << "x" << width << ", " << in
                                      << " to " << out << " channels");
      ExpectClose(problem.Run(isa()), problem.Reference(), tolerance());
    }
  }
}

TEST_P(WinogradConv3x3Test, ActivatesSumsWithBias) {
  Problem problem(side(), 1, 9, 5, 8, 20);
  for (const WinogradActivation activation :
       {WinogradActivation::kRelu, WinogradActivation::kGeluTanh}) {
    problem.activation = activation;
    ExpectClose(problem.Run(isa()), problem.Reference(), tolerance());
  }
}

TEST_P(WinogradConv3x3Test, AddsWhatItWouldWrite) {
  Problem problem(side(), 2, 9, 5, 8, 21);
  for (const WinogradActivation activation :
       {WinogradActivation::kNone, WinogradActivation::kRelu,
        WinogradActivation::kGeluTanh}) {
    problem.activation = activation;
    const Matrix<float> written = problem.Run(isa());
    Matrix<float> y = problem.Output();
    std::mt19937 random(2);
    y.FillNormal(random, 0, 1);
    const Matrix<float> before = y;
    const std::vector<float> packed = problem.Packed(isa());
    WinogradConv3x3Args args = problem.Args(packed, y);
    args.add = true;
    Convolve(args, 0, WinogradTiles(args), isa());
    EXPECT_TRUE(y.GuardsIntact());
    for (int64_t i = 0; i < y.rows(); ++i) {
      for (int c = 0; c < problem.out; ++c) {
        ASSERT_EQ(y.at(i, c), before.at(i, c) + written.at(i, c));
      }
    }
  }
}

// The maps have more tiles than the kernel computes together.
TEST_P(WinogradConv3x3Test, SharesOfTheTilesGiveTheSameBits) {
  const Problem problem(side(), 20, 30, 18, 8, 9);
  const Matrix<float> whole = problem.Run(isa());
  Matrix<float> y = problem.Output();
  const std::vector<float> packed = problem.Packed(isa());
  const WinogradConv3x3Args args = problem.Args(packed, y);
  const int64_t tiles = WinogradTiles(args);
  ASSERT_GT(tiles, kWinogradBlock);
  for (int64_t begin = 0; begin < tiles; begin += 7) {
    Convolve(args, begin, std::min(tiles, begin + 7), isa());
  }
  EXPECT_TRUE(y == whole);
}

TEST_P(WinogradConv3x3Test, ANanStaysInItsMapAndPassesTheRelu) {
  Problem problem(side(), 3, 7, 7, 8, 8);
  problem.activation = WinogradActivation::kRelu;
  const Matrix<float> clean = problem.Run(isa());
  for (const float value : {std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity()}) {
    problem.x.at(49 + 24, 3) = value;  // In the middle of the second map.
    const Matrix<float> dirty = problem.Run(isa());
    for (int64_t i = 0; i < dirty.rows(); ++i) {
      if (i / 49 == 1) continue;
      EXPECT_TRUE(dirty.RowEquals(i, clean, i)) << "row " << i;
    }
    EXPECT_FALSE(dirty.RowIsFinite(49 + 24));
  }
}

}  // namespace
}  // namespace sfmamba::kernels
