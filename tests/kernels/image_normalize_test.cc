#include "kernels/image_normalize.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"

namespace sfmamba {
namespace {

constexpr std::array<float, 3> kMean = {0.485f, 0.456f, 0.406f};
constexpr std::array<float, 3> kStd = {0.229f, 0.224f, 0.225f};

std::vector<uint8_t> EveryByteInEveryChannel() {
  std::vector<uint8_t> rgb(3 * 256);
  for (int p = 0; p < 256; ++p) {
    rgb[3 * p] = p;
    rgb[3 * p + 1] = 255 - p;
    rgb[3 * p + 2] = p ^ 0x55;
  }
  return rgb;
}

// The three operations as written, each rounded to fp32.
float Expected(uint8_t value, int c) {
  volatile float scaled = static_cast<float>(value) / 255.0f;
  volatile float centred = scaled - kMean[c];
  return centred / kStd[c];
}

TEST(ImageNormalizeTest, BothLayoutsHoldTheDefinedBits) {
  const std::vector<uint8_t> rgb = EveryByteInEveryChannel();
  std::vector<float> planes(3 * 256), pixels(3 * 256);
  ImageNormalizeCpu<float>(
      {256, rgb.data(), planes.data(), 1, 256, kMean, kStd});
  ImageNormalizeCpu<float>({256, rgb.data(), pixels.data(), 3, 1, kMean, kStd});
  for (int p = 0; p < 256; ++p) {
    for (int c = 0; c < 3; ++c) {
      const float expected = Expected(rgb[3 * p + c], c);
      EXPECT_EQ(planes[c * 256 + p], expected);
      EXPECT_EQ(pixels[p * 3 + c], expected);
    }
  }
}

TEST(ImageNormalizeTest, BFloat16IsTheRoundedFloat) {
  const std::vector<uint8_t> rgb = EveryByteInEveryChannel();
  std::vector<BFloat16> y(3 * 256);
  ImageNormalizeCpu<BFloat16>({256, rgb.data(), y.data(), 1, 256, kMean, kStd});
  for (int p = 0; p < 256; ++p) {
    EXPECT_EQ(y[p].bits, BFloat16(Expected(rgb[3 * p], 0)).bits);
  }
}

TEST(ImageNormalizeTest, WritesNothingElse) {
  const std::vector<uint8_t> rgb(3 * 5, 7);
  Matrix<float> y(3, 5);
  ImageNormalizeCpu<float>(
      {5, rgb.data(), y.data(), 1, y.stride(), kMean, kStd});
  EXPECT_TRUE(y.GuardsIntact());
  EXPECT_EQ(y.at(2, 4), Expected(7, 2));
}

}  // namespace
}  // namespace sfmamba
