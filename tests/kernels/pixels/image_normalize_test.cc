#include "kernels/pixels/image_normalize.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"
#include "tests/testing/planes.h"

namespace sfmamba::kernels {
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

// Computes the three operations of the definition. Each one rounds to fp32.
float Expected(uint8_t value, int c) {
  volatile float scaled = static_cast<float>(value) / 255.0f;
  volatile float centred = scaled - kMean[c];
  return centred / kStd[c];
}

TEST(ImageNormalizeTest, BothLayoutsHoldTheDefinedBits) {
  const std::vector<uint8_t> rgb = EveryByteInEveryChannel();
  std::vector<float> planes(3 * 256), pixels(3 * 256);
  ImageNormalizeCpu<float>(
      {1, 256, rgb.data(), planes.data(), 256, 1, 256, kMean, kStd});
  ImageNormalizeCpu<float>(
      {1, 256, rgb.data(), pixels.data(), 3 * 256, 3, 1, kMean, kStd});
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
  ImageNormalizeCpu<BFloat16>(
      {1, 256, rgb.data(), y.data(), 256, 1, 256, kMean, kStd});
  for (int p = 0; p < 256; ++p) {
    EXPECT_EQ(y[p].bits, BFloat16(Expected(rgb[3 * p], 0)).bits);
  }
}

TEST(ImageNormalizeTest, PlanesHaveTheBitsOfPixels) {
  const std::vector<uint8_t> rgb = EveryByteInEveryChannel();
  const std::vector<uint8_t> planes = PlanesOf(rgb);
  std::vector<float> expected(3 * 256), y(3 * 256);
  ImageNormalizeCpu<float>(
      {16, 16, rgb.data(), expected.data(), 3 * 16, 3, 1, kMean, kStd});
  ImageNormalizeCpu<float>({16, 16, planes.data(), y.data(), 3 * 16, 3, 1,
                            kMean, kStd, /*rgb_pixel_stride=*/1,
                            /*rgb_channel_stride=*/256});
  EXPECT_EQ(y, expected);
}

// Guards separate rows and planes, as padding does in a batch.
TEST(ImageNormalizeTest, WritesNothingElse) {
  constexpr int kHeight = 4, kWidth = 5;
  std::vector<uint8_t> rgb(3 * kHeight * kWidth);
  for (int p = 0; p < rgb.size(); ++p) rgb[p] = p;
  Matrix<float> y(3 * kHeight, kWidth);
  ImageNormalizeCpu<float>({kHeight, kWidth, rgb.data(), y.data(), y.stride(),
                            1, kHeight * y.stride(), kMean, kStd});
  EXPECT_TRUE(y.GuardsIntact());
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < kHeight; ++i) {
      for (int j = 0; j < kWidth; ++j) {
        EXPECT_EQ(y.at(c * kHeight + i, j),
                  Expected(3 * (i * kWidth + j) + c, c));
      }
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels
