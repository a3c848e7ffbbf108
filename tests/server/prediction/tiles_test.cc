#include "server/prediction/tiles.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/errors/error.h"

namespace sfmamba::prediction {
namespace {

// Returns a detector with inputs of at most 800 x 1333 pixels.
model::ModelConfig Detector() {
  model::ModelConfig config;
  config.task = model::VisionTask::kDetection;
  config.resize = model::Resize::kKeepRatio;
  config.short_side = 800;
  config.long_side = 1333;
  return config;
}

TEST(TilesTest, AreThoseOfSahi) {
  std::ifstream file("tests/server/prediction/testdata/sahi/sahi.json");
  const nlohmann::json recorded = nlohmann::json::parse(file);
  for (const nlohmann::json& one : recorded["slices"]) {
    const std::vector<int> picture = one["picture"], tile = one["tile"];
    std::vector<std::vector<int>> tiles;
    const SlideGrid grid =
        TileGrid({picture[1], picture[0]}, {tile[1], tile[0]},
                 one["overlap"].get<float>());
    for (int64_t i = 0; i < grid.windows(); ++i) {
      const image::PixelRect rect = grid.Region(i);
      tiles.push_back({rect.left, rect.top, rect.left + rect.width,
                       rect.top + rect.height});
    }
    EXPECT_EQ(tiles, one["tiles"].get<std::vector<std::vector<int>>>())
        << one["picture"] << one["tile"] << one["overlap"];
  }
}

TEST(TilesTest, ThePictureIsTheLastPart) {
  ImageFacts image;
  image.seen = {3000, 4000};
  v1::Tiles tiles;
  ASSERT_TRUE(DivideIntoTiles(tiles, Detector(), 64, &image).ok());
  ASSERT_EQ(image.parts.size(), 31u);
  EXPECT_EQ(image.parts[0].region.width, 800);
  EXPECT_EQ(image.parts[0].key.width, 800);
  EXPECT_EQ(image.parts.back().region.width, 4000);
  EXPECT_EQ(image.parts.back().region.height, 3000);
  EXPECT_EQ(image.parts.back().input_bytes, 3 * 1067 * 800);
  image.parts.clear();
  tiles.set_without_picture(true);
  ASSERT_TRUE(DivideIntoTiles(tiles, Detector(), 30, &image).ok());
  EXPECT_EQ(image.parts.size(), 30u);
}

TEST(TilesTest, WithoutASizeTheSmallestThatFitAreTaken) {
  for (const image::PictureSize& picture :
       std::vector<image::PictureSize>{{3000, 16384},
                                       {16384, 3000},
                                       {7000, 7000},
                                       {801, 50000},
                                       {1, 65535},
                                       {6000, 8000},
                                       {65535, 700}}) {
    for (const float overlap : {0.f, 0.2f, 0.9f}) {
      for (const bool without_picture : {false, true}) {
        ImageFacts image;
        image.seen = picture;
        v1::Tiles tiles;
        tiles.set_overlap(overlap);
        tiles.set_without_picture(without_picture);
        SCOPED_TRACE(
            absl::StrCat(picture.width, "x", picture.height, " ", overlap));
        ASSERT_EQ(DivideIntoTiles(tiles, Detector(), 64, &image),
                  absl::OkStatus());
        EXPECT_LE(image.parts.size(), 64u);
        EXPECT_GT(image.parts.size(), 1u);
        // One pixel less would give too many tiles, except at the model's input
        // size.
        const int side =
            std::max(image.parts[0].region.width, image.parts[0].region.height);
        if (side == 800) continue;
        tiles.set_width(side - 1);
        tiles.set_height(side - 1);
        EXPECT_FALSE(DivideIntoTiles(tiles, Detector(), 64, &image).ok());
      }
    }
  }
}

TEST(TilesTest, OneSideMayBeLeftOpen) {
  ImageFacts image;
  image.seen = {6000, 8000};
  v1::Tiles tiles;
  tiles.set_width(800);
  ASSERT_EQ(DivideIntoTiles(tiles, Detector(), 64, &image), absl::OkStatus());
  EXPECT_EQ(image.parts[0].region.width, 800);
  EXPECT_GT(image.parts[0].region.height, 800);
  // With this width, there are too many tiles at any height.
  tiles.set_width(10);
  EXPECT_FALSE(DivideIntoTiles(tiles, Detector(), 64, &image).ok());
}

TEST(TilesTest, ARequestMayAskForFewerAtMost) {
  ImageFacts image;
  image.seen = {3000, 4000};
  v1::Tiles tiles;
  tiles.set_max_tiles(30);
  EXPECT_TRUE(DivideIntoTiles(tiles, Detector(), 64, &image).ok());
  EXPECT_GT(image.parts[0].region.width, 800);
  image.parts.clear();
  tiles.set_width(800);
  tiles.set_height(800);
  tiles.set_max_tiles(31);
  EXPECT_TRUE(DivideIntoTiles(tiles, Detector(), 64, &image).ok());
  image.parts.clear();
  tiles.set_max_tiles(30);
  const absl::Status fewer = DivideIntoTiles(tiles, Detector(), 64, &image);
  EXPECT_EQ(server::GetMetadata("max", fewer), "30");
  tiles.set_max_tiles(1000);
  const absl::Status more = DivideIntoTiles(tiles, Detector(), 20, &image);
  EXPECT_EQ(server::GetMetadata("max", more), "20");
}

TEST(TilesTest, ASmallPictureIsOnePart) {
  ImageFacts image;
  image.seen = {300, 500};
  ASSERT_TRUE(DivideIntoTiles(v1::Tiles(), Detector(), 1, &image).ok());
  ASSERT_EQ(image.parts.size(), 1u);
  EXPECT_EQ(image.parts[0].region.width, 500);
}

// Even for the largest picture, a refusal is fast. It suggests tiles that the
// server accepts.
TEST(TilesTest, ARefusalSaysWhatWouldFit) {
  for (const image::PictureSize& side : std::vector<image::PictureSize>{
           {1, 2}, {7, 8}, {800, 801}, {1, 65535}, {65535, 1}}) {
    for (const float overlap : {0.f, 0.2f, 0.9f}) {
      for (const int most : {1, 2, 5, 64}) {
        ImageFacts image;
        image.seen = {65535, 65535};
        v1::Tiles tiles;
        tiles.set_width(side.width);
        tiles.set_height(side.height);
        tiles.set_overlap(overlap);
        const absl::Status status =
            DivideIntoTiles(tiles, Detector(), most, &image);
        ASSERT_EQ(server::GetErrorDetail(status).reason, "TOO_MANY_TILES");
        EXPECT_EQ(server::GetMetadata("max", status), std::to_string(most));
        EXPECT_TRUE(image.parts.empty());
        tiles.set_width(std::stoi(server::GetMetadata("width", status)));
        tiles.set_height(std::stoi(server::GetMetadata("height", status)));
        EXPECT_EQ(ValidateTiles(tiles), absl::OkStatus());
        EXPECT_TRUE(DivideIntoTiles(tiles, Detector(), most, &image).ok());
        EXPECT_LE(static_cast<int>(image.parts.size()), most);
      }
    }
  }
}

}  // namespace
}  // namespace sfmamba::prediction
