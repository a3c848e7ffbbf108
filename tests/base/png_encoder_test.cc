#include "base/png_encoder.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/image_decoder.h"
#include "gtest/gtest.h"
#include "tests/server/masks.h"
#include "tests/testing/encode_masks.h"

namespace sfmamba::base {
namespace {

TEST(PngEncoderTest, EachDepthComesBack) {
  std::mt19937 random(1);
  for (int bits : {1, 8, 16}) {
    for (const auto& [width, height] :
         {std::pair{1, 1}, {7, 2}, {8, 3}, {9, 1}, {1, 40}, {300, 200}}) {
      std::vector<int> values;
      while (values.size() < width * height) {
        values.push_back(random() % (1 << bits));
      }
      const auto fill = [&, width = width](int y, uint8_t* row) {
        for (int x = 0; x < width; ++x) {
          const int value = values[y * width + x];
          if (bits == 16) {
            row[2 * x] = value >> 8;
            row[2 * x + 1] = value;
          } else if (bits == 8) {
            row[x] = value;
          } else {
            if (x % 8 == 0) row[x / 8] = 0;
            row[x / 8] |= value << (7 - x % 8);
          }
        }
      };
      const auto png = EncodeGreyPng(width, height, bits, fill);
      ASSERT_TRUE(png.ok()) << png.status();
      const server::GreyPng decoded = server::DecodeGreyPng(*png);
      EXPECT_EQ(decoded.width, width);
      EXPECT_EQ(decoded.height, height);
      EXPECT_EQ(decoded.bit_depth, bits);
      EXPECT_EQ(decoded.values, values);
    }
  }
}

TEST(PngEncoderTest, RowsMayBeAddedAFewAtATime) {
  const auto fill = [](int y, uint8_t* row) {
    for (int x = 0; x < 100; ++x) row[x] = x * y;
  };
  const auto whole = EncodeGreyPng(100, 50, 8, fill);
  ASSERT_TRUE(whole.ok());
  for (int rows : {1, 7, 49, 50, 1000}) {
    GreyPngEncoder encoder(100, 50, 8);
    int calls = 0;
    for (; !encoder.done(); ++calls) {
      ASSERT_TRUE(encoder.AddRows(rows, fill).ok());
    }
    EXPECT_EQ(calls, (50 + rows - 1) / rows);
    EXPECT_EQ(encoder.bytes(), whole->size());
    EXPECT_EQ(encoder.Take(), *whole);
  }
}

TEST(PngEncoderTest, WhatLibpngRefusesIsAnError) {
  const auto png = EncodeGreyPng(2'000'000, 1, 8,
                                 // libpng supports at most 1 million pixels per
                                 // side.
                                 [](int, uint8_t*) {});
  EXPECT_EQ(png.status().code(), absl::StatusCode::kInternal);
  EXPECT_NE(png.status().message().find("PNG: "), absl::string_view::npos);
}

TEST(PngEncoderTest, AnRgbPictureComesBack) {
  RgbImage image;
  image.width = 37;
  image.height = 23;
  std::mt19937 random(1);
  for (int i = 0; i < 3 * 37 * 23; ++i) image.data.push_back(random());
  const absl::StatusOr<std::string> png = EncodeRgbPng(image);
  ASSERT_TRUE(png.ok()) << png.status();
  const absl::StatusOr<RgbImage> read =
      DecodeImage(*png, ImageLimits(), /*apply_orientation=*/true, 0);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->width, 37);
  EXPECT_EQ(read->height, 23);
  EXPECT_EQ(read->data, image.data);
}

TEST(PngEncoderTest, APictureWithoutPixelsIsRefused) {
  EXPECT_EQ(EncodeRgbPng(RgbImage()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sfmamba::base
