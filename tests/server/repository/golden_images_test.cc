#include "server/repository/golden_images.h"

#include "gtest/gtest.h"
#include "tests/server/fake_model.h"

namespace sfmamba::repository {
namespace {

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
