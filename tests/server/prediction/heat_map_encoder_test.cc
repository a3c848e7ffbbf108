#include "server/prediction/heat_map_encoder.h"

#include <cstdint>
#include <vector>

#include "base/png_decoder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sfmamba::prediction {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

model::HeatMap MapOf(int height, int width, std::vector<float> values) {
  model::HeatMap map;
  map.class_id = 7;
  map.height = height;
  map.width = width;
  map.values = std::move(values);
  return map;
}

image::PictureFrame FrameOf(int height, int width,
                            const image::CropRect& input = {}) {
  image::PictureFrame frame;
  frame.seen = {height, width};
  frame.input = input;
  return frame;
}

v1::HeatMap Encode(const model::HeatMap& map, const image::PictureFrame& frame,
                   int* pieces = nullptr) {
  HeatMapEncoder encoder(map, frame);
  while (!encoder.done()) {
    EXPECT_TRUE(encoder.EncodeNext().ok());
    if (pieces != nullptr) ++*pieces;
  }
  return encoder.Take();
}

std::vector<uint16_t> Pixels(const v1::HeatMap& map) {
  const auto png = base::DecodeGreyPng(map.png(), base::ImageLimits());
  EXPECT_TRUE(png.ok()) << png.status();
  EXPECT_EQ(png->bit_depth, 8);
  EXPECT_EQ(png->width, map.width());
  EXPECT_EQ(png->height, map.height());
  return png->data;
}

TEST(HeatMapEncoderTest, ResizesBilinearly) {
  const v1::HeatMap map =
      Encode(MapOf(2, 2, {-1, 0, 1, 2}), FrameOf(/*height=*/2, /*width=*/4));
  EXPECT_EQ(map.class_id(), 7);
  EXPECT_EQ(map.low(), -1);
  EXPECT_EQ(map.high(), 2);
  EXPECT_TRUE(map.values().empty());
  // The values are scaled, so that -1 becomes 0 and 2 becomes 255. The picture
  // has twice as many columns as the map. In columns of the map, the centres of
  // the picture's columns are at -0.25, 0.25, 0.75 and 1.25.
  EXPECT_THAT(Pixels(map), ElementsAre(0, 21, 64, 85, 170, 191, 234, 255));
  // In rows of the map, the centres of the picture's rows are at -0.25, 0.25
  // and so on, up to 2.25.
  EXPECT_THAT(Pixels(Encode(MapOf(3, 2, {0, 0, 100, 200, 255, 40}),
                            FrameOf(/*height=*/6, /*width=*/2))),
              ElementsAre(0, 0, 25, 50, 75, 150, 139, 160, 216, 80, 255, 40));
}

TEST(HeatMapEncoderTest, WhatTheModelDidNotSeeIsZero) {
  const model::HeatMap one = MapOf(1, 2, {5, 6});
  EXPECT_THAT(Pixels(Encode(one, FrameOf(1, 8, {0.25f, 0, 0.75f, 1}))),
              ElementsAre(0, 0, 0, 64, 191, 255, 0, 0));
  // The input is padded, and its middle half shows the picture.
  EXPECT_THAT(Pixels(Encode(MapOf(4, 1, {0, 1, 2, 3}),
                            FrameOf(2, 1, {0, -0.5f, 1, 1.5f}))),
              ElementsAre(85, 170));
  EXPECT_THAT(
      Pixels(Encode(MapOf(2, 1, {5, 6}), FrameOf(4, 1, {0, 0.25f, 1, 0.75f}))),
      ElementsAre(0, 0, 255, 0));
}

// The model saw a pixel if the pixel's centre lies in the part that the model
// saw. A centre exactly on the left or top edge lies in this part. A centre on
// the right or bottom edge does not.
TEST(HeatMapEncoderTest, TheModelSawFromOneEdgeUpToTheOther) {
  EXPECT_THAT(Pixels(Encode(MapOf(1, 2, {5, 6}),
                            FrameOf(1, 4, {0.375f, 0, 0.875f, 1}))),
              ElementsAre(0, 0, 128, 0));
  EXPECT_THAT(Pixels(Encode(MapOf(1, 2, {6, 5}),
                            FrameOf(1, 4, {0.375f, 0, 0.875f, 1}))),
              ElementsAre(0, 255, 128, 0));
}

TEST(HeatMapEncoderTest, EqualValuesAreZero) {
  const v1::HeatMap map = Encode(MapOf(2, 2, {3, 3, 3, 3}), FrameOf(5, 3));
  EXPECT_EQ(map.low(), 3);
  EXPECT_EQ(map.high(), 3);
  EXPECT_THAT(Pixels(map), Each(0));
}

TEST(HeatMapEncoderTest, LargePicturesAreEncodedInPieces) {
  int pieces = 0;
  const v1::HeatMap map =
      Encode(MapOf(1, 1, {3}), FrameOf(600, 1000, {0, 0, 1, 1}), &pieces);
  EXPECT_EQ(Pixels(map).size(), 600'000);
  EXPECT_EQ(pieces, 3);
  EXPECT_EQ(Pixels(Encode(MapOf(1, 1, {3}), FrameOf(1, 1))).size(), 1);
}

TEST(HeatMapEncoderTest, APieceIsExpectedToTakeItsPartOfTheWhole) {
  const HeatMapEncoder small(MapOf(1, 1, {3}), FrameOf(10, 20));
  EXPECT_EQ(small.NextCost(), HeatMapEncoder::Cost({10, 20}));
  const HeatMapEncoder large(MapOf(1, 1, {3}), FrameOf(600, 1000));
  EXPECT_LT(large.NextCost(), HeatMapEncoder::Cost({600, 1000}) / 2);
  EXPECT_GT(large.NextCost(), HeatMapEncoder::Cost({600, 1000}) / 4);
}

}  // namespace
}  // namespace sfmamba::prediction
