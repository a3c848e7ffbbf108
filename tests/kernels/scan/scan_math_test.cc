#include "kernels/scan/scan_math.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

// Tests the mathematics of the CUDA scan on the host.
namespace sfmamba::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Softplus2Test, IsAccurateEverywhere) {
  for (double x = -80; x <= 80; x += 0.00193) {
    const float v = static_cast<float>(x);
    const double expected = v > 40 ? v : std::log1p(std::exp2(v)) / std::log(2);
    ASSERT_NEAR(Softplus2(v) / expected, 1, 5e-7) << v;
  }
}

TEST(Softplus2Test, VanishesAndGrowsWithoutBound) {
  EXPECT_EQ(Softplus2(-200), 0);
  EXPECT_EQ(Softplus2(-kInf), 0);
  EXPECT_EQ(Softplus2(300), 300);
  EXPECT_EQ(Softplus2(kInf), kInf);
  EXPECT_TRUE(std::isnan(Softplus2(kNan)));
}

TEST(ScanStepTest, FollowsTheRecurrence) {
  const float s = Softplus2(1.5f * kLog2E);
  const double delta = std::log1p(std::exp(1.5));
  EXPECT_NEAR(s * kLn2, delta, 1e-6);
  const float h = ScanStep(/*h=*/2, /*A=*/-0.75f, s, /*g=*/0.5f, /*B=*/3);
  EXPECT_NEAR(h, std::exp(-0.75 * delta) * 2 + 1.5, 1e-6);
}

TEST(CombineTest, IsAssociativeWhereverSequencesStart) {
  const ScanSpan a{0.5f, 3}, b{0.25f, -2}, c{2, 1};
  for (const bool b_starts : {false, true}) {
    for (const bool c_starts : {false, true}) {
      const ScanSpan left = Combine(Combine(a, b, b_starts), c, c_starts);
      const ScanSpan right =
          Combine(a, Combine(b, c, c_starts), b_starts || c_starts);
      EXPECT_EQ(left.state, right.state);
      if (!b_starts && !c_starts) {
        EXPECT_EQ(left.decay, right.decay);
      }
    }
  }
}

TEST(CombineTest, NothingPassesAStart) {
  const ScanSpan clean{0.25f, -2};
  for (const float poison : {kNan, kInf, -kInf}) {
    const ScanSpan combined = Combine({poison, poison}, clean, true);
    EXPECT_EQ(combined.decay, 0.25f);
    EXPECT_EQ(combined.state, -2);
  }
}

}  // namespace
}  // namespace sfmamba::kernels
