#include "kernels/linear/gated_convolution.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

constexpr int kTaps = 7;

double Gate(GateActivation activation, double v) {
  return activation == GateActivation::kSilu
             ? v / (1 + std::exp(-v))
             : v / 2 * std::erfc(-v / std::sqrt(2.0));
}

// Random maps, stored as [count * height * width, channels], and random
// weights.
template <typename T>
struct Problem {
  Problem(int count, int height, int width, int hidden, int conv,
          GateActivation activation)
      : x(int64_t{count} * height * width, 2 * hidden, /*padding=*/0) {
    std::mt19937 random(1);
    x.FillNormal(random, 0.2f, 1);
    weights = Normals(random, kTaps * kTaps * conv, 0, 0.3f);
    bias = Normals(random, conv, 0, 1);
    args.count = count;
    args.height = height;
    args.width = width;
    args.hidden = hidden;
    args.conv = conv;
    args.activation = activation;
  }

  // Computes the rows in parts of size `part`.
  Matrix<T> Run(CpuIsa isa, int64_t part = 1 << 20) {
    const int64_t rows = args.count * args.height;
    Matrix<T> y(rows * args.width, args.hidden, /*padding=*/0);
    args.x = x.data();
    args.weight = weights.data();
    args.bias = bias.data();
    args.y = y.data();
    for (int64_t begin = 0; begin < rows; begin += part) {
      GatedConvolutionCpu(args, begin, std::min(rows, begin + part), isa);
    }
    EXPECT_TRUE(y.GuardsIntact());
    return y;
  }

  double Convolved(int64_t pixel, int c) const {
    const int64_t column = pixel % args.width;
    const int64_t row = pixel / args.width % args.height;
    double sum = bias[c];
    for (int t = 0; t < kTaps * kTaps; ++t) {
      const int64_t down = t / kTaps - kTaps / 2;
      const int64_t across = t % kTaps - kTaps / 2;
      if (row + down < 0 || row + down >= args.height) continue;
      if (column + across < 0 || column + across >= args.width) continue;
      sum += double{weights[t * args.conv + c]} *
             static_cast<float>(x.at(pixel + down * args.width + across,
                                     2 * args.hidden - args.conv + c));
    }
    return sum;
  }

  Matrix<double> Reference() const {
    Matrix<double> y(x.rows(), args.hidden);
    const int plain = args.hidden - args.conv;
    for (int64_t i = 0; i < y.rows(); ++i) {
      for (int c = 0; c < args.hidden; ++c) {
        const double value = c < plain
                                 ? static_cast<float>(x.at(i, args.hidden + c))
                                 : Convolved(i, c - plain);
        y.at(i, c) =
            Gate(args.activation, static_cast<float>(x.at(i, c))) * value;
      }
    }
    return y;
  }

  GatedConvolutionArgs<T> args{};
  Matrix<T> x;
  std::vector<float> weights;  // [7, 7, conv]
  std::vector<float> bias;
};

template <typename T>
void ExpectTheDefinition(CpuIsa isa, int height, int width, int hidden,
                         int conv) {
  for (const GateActivation activation :
       {GateActivation::kGeluErf, GateActivation::kSilu}) {
    SCOPED_TRACE(testing::Message() << height << "x" << width << ", " << hidden
                                    << " and " << conv << " channels");
    Problem<T> problem(2, height, width, hidden, conv, activation);
    ExpectClose(problem.Run(isa), problem.Reference(), 1e-5);
  }
}

class GatedConvolutionTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isas, GatedConvolutionTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

TEST_P(GatedConvolutionTest, IsTheDefinition) {
  for (const auto& [height, width] :
       {std::pair{1, 1}, {7, 7}, {2, 9}, {12, 3}, {5, 20}}) {
    for (const auto& [hidden, conv] :
         {std::pair{128, 48}, {21, 8}, {85, 32}, {20, 19}, {9, 9}}) {
      ExpectTheDefinition<float>(GetParam(), height, width, hidden, conv);
      ExpectTheDefinition<BFloat16>(GetParam(), height, width, hidden, conv);
    }
  }
}

TEST_P(GatedConvolutionTest, PartsOfTheRowsHaveTheSameBits) {
  Problem<float> problem(2, 17, 31, 40, 24, GateActivation::kGeluErf);
  const Matrix<float> whole = problem.Run(GetParam());
  for (const int64_t part : {1, 7}) {
    EXPECT_TRUE(problem.Run(GetParam(), part) == whole) << part;
  }
}

TEST_P(GatedConvolutionTest, ANanStaysWithThePixelsThatReadIt) {
  Problem<float> problem(3, 9, 12, 24, 16, GateActivation::kSilu);
  const Matrix<float> clean = problem.Run(GetParam());
  // This value is in a convolved channel, in row 4 and column 5 of the second
  // map.
  problem.x.at(108 + 4 * 12 + 5, 40) = std::numeric_limits<float>::quiet_NaN();
  const Matrix<float> dirty = problem.Run(GetParam());
  for (int64_t i = 0; i < dirty.rows(); ++i) {
    const int64_t row = i % 108 / 12, column = i % 12;
    const bool reads =
        i / 108 == 1 && row >= 1 && row <= 7 && column >= 2 && column <= 8;
    EXPECT_EQ(dirty.RowEquals(i, clean, i), !reads) << i;
    EXPECT_EQ(dirty.RowIsFinite(i), !reads) << i;
  }
}

class SiluTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isas, SiluTest, testing::ValuesIn(SupportedCpuIsas()),
                         IsaName);

template <typename T>
void ExpectSilu(CpuIsa isa, int count) {
  std::mt19937 random(1);
  Matrix<T> x(1, count);
  x.FillNormal(random, 0, 3);
  Matrix<double> expected(1, count);
  for (int i = 0; i < count; ++i) {
    expected.at(0, i) =
        Gate(GateActivation::kSilu, static_cast<float>(x.at(0, i)));
  }
  SiluCpu<T>(x.data(), count, x.data(), isa);
  ExpectClose(x, expected, 1e-6);
  EXPECT_TRUE(x.GuardsIntact());
}

TEST_P(SiluTest, AgreesWithFp64) {
  for (const int count : {1, 7, 16, 1001}) {
    ExpectSilu<float>(GetParam(), count);
    ExpectSilu<BFloat16>(GetParam(), count);
  }
}

TEST_P(SiluTest, HandlesLargeValuesAndNan) {
  float x[] = {-1e30f, -200, 200, 1e30f,
               std::numeric_limits<float>::quiet_NaN()};
  SiluCpu<float>(x, 5, x, GetParam());
  EXPECT_NEAR(x[0] / 1e30f, 0, 1e-7);
  EXPECT_NEAR(x[1], 0, 1e-7);
  EXPECT_EQ(x[2], 200);
  EXPECT_EQ(x[3], 1e30f);
  EXPECT_TRUE(std::isnan(x[4]));
}

}  // namespace
}  // namespace sfmamba::kernels
