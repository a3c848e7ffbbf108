// Compares Preprocess() of server/image/image.h with Pillow's results for the
// same pictures (testdata/make_preprocess_golden.py).

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/image/image.h"
#include "tests/server/picture.h"

namespace sfmamba::image {
namespace {

// Returns the same pixels as picture() of the script.
RgbImage Noise(int width, int height, uint32_t seed) {
  RgbImage image;
  image.width = width;
  image.height = height;
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      for (uint32_t c = 0; c < 3; ++c) {
        uint32_t value =
            x * 73856093u ^ y * 19349663u ^ c * 83492791u ^ seed * 2654435761u;
        value *= 2246822519u;
        value ^= value >> 15;
        value *= 3266489917u;
        image.data.push_back(value >> 24);
      }
    }
  }
  return image;
}

RgbImage Plain(int width, int height, uint8_t value) {
  RgbImage image;
  image.width = width;
  image.height = height;
  image.data.assign(3 * width * height, value);
  return image;
}

int32_t ReadInt(const std::string& bytes, size_t& at) {
  int32_t value = 0;
  for (int i = 3; i >= 0; --i) {
    value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  }
  at += 4;
  return value;
}

TEST(PreprocessTest, EqualsPillowBitForBit) {
  std::ifstream file("tests/server/image/testdata/preprocess_golden.bin",
                     std::ios::binary);
  const std::string golden((std::istreambuf_iterator<char>(file)), {});
  int cases = 0;
  for (size_t at = 0; at < golden.size(); ++cases) {
    const int width = ReadInt(golden, at);
    const int height = ReadInt(golden, at);
    PreprocessOptions options;
    options.resize_size = ReadInt(golden, at);
    options.size = ReadInt(golden, at);
    options.mode = ReadInt(golden, at) == 0 ? ResizeMode::kCenterCrop
                                            : ResizeMode::kStretch;
    const uint32_t seed = ReadInt(golden, at);
    const size_t size = 3 * options.size * options.size;
    ASSERT_LE(at + size, golden.size());
    const std::vector<uint8_t> expected(&golden[at], &golden[at] + size);
    at += size;

    const ImageBuffer result =
        Preprocess(Noise(width, height, seed), options).value();
    EXPECT_EQ(result.width, options.size);
    EXPECT_EQ(result.height, options.size);
    EXPECT_TRUE(result.values.empty());
    ASSERT_EQ(result.pixels.size(), size);
    int different = 0;
    for (size_t i = 0; i < size; ++i) {
      different += result.pixels[i] != expected[i];
    }
    EXPECT_EQ(different, 0) << "of " << size << " bytes of " << width << " x "
                            << height << " to " << options.resize_size;
  }
  EXPECT_EQ(cases, 15);
}

void ExpectPart(const CropRect& part, const CropRect& expected) {
  EXPECT_FLOAT_EQ(part.x_min, expected.x_min);
  EXPECT_FLOAT_EQ(part.y_min, expected.y_min);
  EXPECT_FLOAT_EQ(part.x_max, expected.x_max);
  EXPECT_FLOAT_EQ(part.y_max, expected.y_max);
}

TEST(PreprocessTest, TellsWhichPartOfThePictureIsSeen) {
  PreprocessOptions options;
  options.size = options.resize_size = 100;
  const PictureSize wide = {/*height=*/200, /*width=*/400};
  ExpectPart(SeenPart(wide, options), {0.25, 0, 0.75, 1});
  options.mode = ResizeMode::kLetterbox;
  ExpectPart(SeenPart(wide, options), {0, -0.5, 1, 1.5});
  options.mode = ResizeMode::kStretch;
  ExpectPart(SeenPart(wide, options), {0, 0, 1, 1});
  options.resize_size = 125;
  ExpectPart(SeenPart(wide, options), {0.096, 0.096, 0.896, 0.896});
}

TEST(PreprocessTest, APictureOfTheRightSizeIsUnchanged) {
  const RgbImage image = Noise(32, 32, 1);
  PreprocessOptions options;
  options.size = options.resize_size = 32;
  for (ResizeMode mode : {ResizeMode::kCenterCrop, ResizeMode::kStretch,
                          ResizeMode::kLetterbox}) {
    options.mode = mode;
    EXPECT_EQ(Preprocess(image, options)->pixels, image.data);
  }
  const RgbImage usual = Noise(224, 224, 1);
  EXPECT_EQ(Preprocess(usual, PreprocessOptions())->pixels, usual.data);
}

TEST(PreprocessTest, LetterboxKeepsTheWholePictureInTheMiddle) {
  PreprocessOptions options;
  options.size = options.resize_size = 8;
  options.mode = ResizeMode::kLetterbox;
  const ImageBuffer wide = *Preprocess(Plain(40, 20, 255), options);
  const ImageBuffer tall = *Preprocess(Plain(20, 40, 255), options);
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 8; ++x) {
      for (int c = 0; c < 3; ++c) {
        const int padding = c == 0 ? 124 : c == 1 ? 116 : 104;
        const int in_wide = y >= 2 && y < 6 ? 255 : padding;
        const int in_tall = x >= 2 && x < 6 ? 255 : padding;
        EXPECT_EQ(wide.pixels[3 * (8 * y + x) + c], in_wide) << x << ", " << y;
        EXPECT_EQ(tall.pixels[3 * (8 * y + x) + c], in_tall) << x << ", " << y;
      }
    }
  }
}

TEST(PreprocessTest, LetterboxKeepsALineOfTheNarrowestPicture) {
  PreprocessOptions options;
  options.size = options.resize_size = 8;
  options.mode = ResizeMode::kLetterbox;
  for (const RgbImage& line : {Plain(1, 1000, 255), Plain(1000, 1, 255)}) {
    const Pixels pixels = std::move(Preprocess(line, options)->pixels);
    EXPECT_EQ(std::count(pixels.begin(), pixels.end(), 255), 3 * 8);
  }
}

TEST(PreprocessTest, ALineOfPixelsCostsNoMoreThanItsCrop) {
  PreprocessOptions options;  // The full size would be 224 x 3,670,016.
  const ImageBuffer result = *Preprocess(Plain(1, 16384, 9), options);
  EXPECT_EQ(result.pixels, std::vector<uint8_t>(3 * 224 * 224, 9));
}

RgbImage CropTo(const RgbImage& image, const CropRect& rect) {
  return server::Crop(image, ToPixels(rect, {image.height, image.width}));
}

TEST(CropTest, RoundsEdgesToPixels) {
  const RgbImage image = Noise(10, 4, 2);
  const RgbImage part = CropTo(image, {0.26f, 0.5f, 0.74f, 1.0f});
  EXPECT_EQ(part.width, 4);  // 2.6 .. 7.4 rounds to 3 .. 7.
  EXPECT_EQ(part.height, 2);
  for (int y = 0; y < 2; ++y) {
    for (int i = 0; i < 12; ++i) {
      EXPECT_EQ(part.data[12 * y + i], image.data[30 * (y + 2) + 9 + i]);
    }
  }
}

TEST(CropTest, TheWholeRectangleIsTheWholePicture) {
  const RgbImage image = Noise(7, 5, 3);
  EXPECT_EQ(CropTo(image, CropRect()).data, image.data);
}

TEST(CropTest, KeepsAtLeastOnePixel) {
  const RgbImage image = Noise(7, 5, 4);
  for (float edge : {0.0f, 0.001f, 0.5f, 0.999f, 1.0f}) {
    const RgbImage part = CropTo(image, {edge, edge, edge, edge});
    EXPECT_EQ(part.width, 1);
    EXPECT_EQ(part.height, 1);
    EXPECT_EQ(part.data.size(), 3);
  }
}

}  // namespace
}  // namespace sfmamba::image
