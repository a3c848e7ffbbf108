#include "model/stage_geometry.h"

#include "gtest/gtest.h"

namespace sfmamba::model {
namespace {

BackboneConfig Full(int sub_window) {
  BackboneConfig config;
  config.window_mode = WindowMode::kFull;
  config.attention_windows = {sub_window, 0};
  return config;
}

void ExpectWindows(const StageWindows& windows, int count, int height,
                   int width, int sub_window, int length) {
  EXPECT_EQ(windows.count, count);
  EXPECT_EQ(windows.height, height);
  EXPECT_EQ(windows.width, width);
  EXPECT_EQ(windows.sub_window, sub_window);
  EXPECT_EQ(windows.length, length);
}

TEST(MapSideTest, EachStageHalvesAndRoundsUp) {
  for (int pixels = 1; pixels <= 600; ++pixels) {
    int side = (pixels + 1) / 2;  // After the first convolution.
    for (int stage = 0; stage < 4; ++stage) {
      side = (side + 1) / 2;
      EXPECT_EQ(MapSide(pixels, stage), side) << pixels << " " << stage;
    }
  }
}

TEST(StageGeometryTest, FixedWindowsCoverTheMap) {
  const BackboneConfig config;
  ExpectWindows(StageGeometry(config, 2).Windows(14, 14), 1, 14, 14, 0, 198);
  ExpectWindows(StageGeometry(config, 2).Windows(15, 28), 4, 14, 14, 0, 198);
  ExpectWindows(StageGeometry(config, 3).Windows(1, 1), 1, 7, 7, 0, 51);
}

TEST(StageGeometryTest, FixedWindowsMayHaveSubWindows) {
  BackboneConfig config;
  config.attention_windows = {7, 0};
  ExpectWindows(StageGeometry(config, 2).Windows(15, 14), 2, 14, 14, 7, 198);
}

TEST(StageGeometryTest, AFullWindowIsTheMap) {
  ExpectWindows(StageGeometry(Full(0), 2).Windows(15, 9), 1, 15, 9, 0, 137);
}

TEST(StageGeometryTest, AFullWindowIsRoundedUpToSubWindows) {
  ExpectWindows(StageGeometry(Full(4), 2).Windows(15, 9), 1, 16, 12, 4, 194);
  ExpectWindows(StageGeometry(Full(10), 2).Windows(15, 9), 1, 20, 10, 10, 202);
}

TEST(StageGeometryTest, AMapWithinOneSubWindowIsNotRoundedUp) {
  ExpectWindows(StageGeometry(Full(15), 2).Windows(15, 9), 1, 15, 9, 0, 137);
}

TEST(StageGeometryTest, WithoutAuxiliaryTokensASequenceIsItsWindow) {
  BackboneConfig config;
  config.tokens = Tokens::kNone;
  ExpectWindows(StageGeometry(config, 2).Windows(14, 14), 1, 14, 14, 0, 196);
}

}  // namespace
}  // namespace sfmamba::model
