#include "server/repository/golden_images.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/server/fake_model.h"

namespace sfmamba::repository {
namespace {

// A test image with flat areas would reveal fewer errors of a model.
TEST(GoldenImagesTest, NoPixelIsAsTheOneBesideOrBelowIt) {
  model::ModelConfig config;
  config.image_size = 64;
  for (const auto& image : MadeUpImages(config)) {
    ASSERT_EQ(image.pixels.size(), 3 * 64 * 64);
    const auto pixel = [&image](int y, int x) {
      return image.pixels.begin() + (y * image.width + x) * 3;
    };
    for (int y = 0; y + 1 < image.height; ++y) {
      for (int x = 0; x + 1 < image.width; ++x) {
        EXPECT_FALSE(std::equal(pixel(y, x), pixel(y, x) + 3, pixel(y, x + 1)));
        EXPECT_FALSE(std::equal(pixel(y, x), pixel(y, x) + 3, pixel(y + 1, x)));
      }
    }
  }
}

TEST(GoldenImagesTest, AreFewerOfADenseModelAsTheyTakeLong) {
  model::ModelConfig classifier, dense;
  dense.task = model::VisionTask::kSegmentation;
  EXPECT_EQ(MadeUpImages(dense).size(), 2);
  EXPECT_EQ(MadeUpImages(classifier).size(), 4);
}

TEST(GoldenImagesTest, AreAlwaysTheSameAndHaveTheModelsAnswers) {
  server::Gate gate;
  model::ModelConfig config;
  config.image_size = server::FakeModel::kSide;
  config.num_classes = server::FakeModel::kClasses;
  server::FakeModel model(config, &gate);
  const auto images = AnswerGoldenImages(model);
  ASSERT_TRUE(images.ok()) << images.status();
  ASSERT_GE(images->size(), 2);
  EXPECT_NE(images->at(0).pixels, images->at(1).pixels);
  const auto again = AnswerGoldenImages(model);
  for (size_t i = 0; i < images->size(); ++i) {
    EXPECT_EQ(images->at(i).pixels, again->at(i).pixels);
    EXPECT_TRUE(CheckResult(again->at(i).result, images->at(i).result).ok());
  }
  EXPECT_FALSE(CheckResult(images->at(0).result, images->at(1).result).ok())
      << "they tell models apart";
  gate.BreakDevice();
  EXPECT_FALSE(AnswerGoldenImages(model).ok());
}

}  // namespace
}  // namespace sfmamba::repository
