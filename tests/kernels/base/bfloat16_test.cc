#include "kernels/base/bfloat16.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace sfmamba::kernels {
namespace {

TEST(BFloat16Test, RoundsToNearestEven) {
  EXPECT_EQ(BFloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(BFloat16(1.0f + 1.0f / 256).bits, 0x3f80);  // A tie rounds to even.
  EXPECT_EQ(BFloat16(1.0f + 3.0f / 256).bits, 0x3f82);  // A tie rounds to even.
  EXPECT_EQ(BFloat16(1.0f + 1.0001f / 256).bits, 0x3f81);  // Above the tie.
  EXPECT_EQ(BFloat16(-1.0f - 1.0001f / 256).bits, 0xbf81);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
}

TEST(BFloat16Test, KeepsInfinityAndNan) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(static_cast<float>(BFloat16(-kInf)), -kInf);
  float nan;
  const uint32_t word = 0x7f800001;  // Its upper half alone is an infinity.
  std::memcpy(&nan, &word, sizeof(nan));
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(nan))));
}

TEST(BFloat16Test, EveryValueSurvivesTheWayThroughFloat) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    BFloat16 value;
    value.bits = bits;
    const float wide = static_cast<float>(value);
    if (std::isnan(wide)) continue;
    ASSERT_EQ(BFloat16(wide).bits, bits);
  }
}

}  // namespace
}  // namespace sfmamba::kernels
