#include "server/prediction/logits_map.h"

#include <random>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "model/vision_model.h"
#include "server/image/keep_ratio.h"
#include "server/repository/model_directory.h"
#include "tests/server/picture.h"
#include "tests/testing/run_model.h"

namespace sfmamba::prediction {
namespace {

using image::PictureSize;

model::Segmentation MapOf(LogitsMap* map) {
  while (!map->done()) map->ComputeNext();
  return map->Take();
}

// The maps must equal the default segmenter's own maps, bit for bit.
TEST(LogitsMapTest, IsTheMapOfTheModelItself) {
  const auto directory =
      repository::ReadModelDirectory({"models/everyday_segmenter/1", ""});
  ASSERT_TRUE(directory.ok()) << directory.status();
  const model::ModelConfig& config = directory->config;
  const auto network =
      model::VisionModel::Load(config, directory->weights_paths);
  ASSERT_TRUE(network.ok()) << network.status();
  for (const PictureSize& size :
       {PictureSize{1, 3}, {97, 61}, {480, 640}, {1501, 999}}) {
    image::RgbImage picture = server::Gradient(size.width, size.height);
    std::minstd_rand random(1);
    for (uint8_t& value : picture.data) value ^= random() % 64;
    const PictureSize input_size =
        image::KeepRatioSize(size, config.short_side, config.long_side);
    const image::RgbImage input =
        image::ResizeBilinear(std::move(picture), input_size);
    for (const bool confidence : {false, true}) {
      model::ModelInput image;
      image.height = input.height;
      image.width = input.width;
      image.original_height = size.height;
      image.original_width = size.width;
      image.pixels = input.data.data();
      model::SegmentationOptions options;
      options.confidence = confidence;
      image.options = options;
      const auto whole = model::RunBatch(**network, {image});
      ASSERT_TRUE(whole.ok()) << whole.status();
      options.logits = true;
      image.options = options;
      auto logits = model::RunBatch(**network, {image});
      ASSERT_TRUE(logits.ok()) << logits.status();

      LogitsMap map(std::get<model::Segmentation>(std::move(logits->front())),
                    config.num_classes, input_size, size, confidence);
      const model::Segmentation own = MapOf(&map);
      const auto& expected = std::get<model::Segmentation>(whole->front());
      const std::string name = absl::StrCat(size.width, "x", size.height);
      EXPECT_EQ(own.height, expected.height) << name;
      EXPECT_EQ(own.width, expected.width) << name;
      EXPECT_TRUE(own.labels == expected.labels) << name;
      EXPECT_TRUE(own.confidence == expected.confidence) << name;
      EXPECT_EQ(own.areas, expected.areas) << name;
    }
  }
}

TEST(LogitsMapTest, IsComputedInPiecesOfSomeMilliseconds) {
  model::Segmentation logits;
  logits.height = logits.width = 2;
  logits.logits.assign(2 * 2 * 20, 1.0f);
  const PictureSize size = {3000, 4000};
  LogitsMap map(std::move(logits), 20, {8, 8}, size, /*confidence=*/false);
  absl::Duration cost;
  int pieces = 0;
  for (; !map.done(); ++pieces) {
    EXPECT_LE(map.NextCost(), absl::Milliseconds(5));
    cost += map.NextCost();
    map.ComputeNext();
  }
  EXPECT_GT(pieces, 10);
  EXPECT_NEAR(absl::ToDoubleSeconds(cost),
              absl::ToDoubleSeconds(LogitsMap::Cost(size, 20, false)), 0.1);
}

}  // namespace
}  // namespace sfmamba::prediction
