// Tests classification results as a caller of sfmamba.v1 receives them.

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "tests/server/prediction/encoded_answer.h"

namespace sfmamba::prediction {
namespace {

const std::vector<std::string>& Labels() {
  static const auto* const labels =
      new std::vector<std::string>{"zero", "one", "two", "three"};
  return *labels;
}

v1::ClassifyResult Convert(const std::vector<float>& logits,
                           const v1::ClassifyParams& params,
                           const std::vector<std::string>& labels = Labels()) {
  return AnswerOf<v1::ClassifyResult>(
      params, ModelOf(labels), model::Classification{logits, {0.5f, -0.5f}});
}

std::vector<int> Ids(const v1::ClassifyResult& result) {
  std::vector<int> ids;
  for (const v1::Category& category : result.categories()) {
    ids.push_back(category.class_id());
  }
  return ids;
}

TEST(ClassificationTest, SoftmaxIsDefaultInDescendingOrder) {
  const v1::ClassifyResult result = Convert({1, 3, 0, 2}, {});
  EXPECT_EQ(Ids(result), (std::vector<int>{1, 3, 0, 2}));
  const double sum = std::exp(1.) + std::exp(3.) + std::exp(0.) + std::exp(2.);
  EXPECT_FLOAT_EQ(result.categories(0).score(), std::exp(3.) / sum);
  EXPECT_FLOAT_EQ(result.categories(3).score(), std::exp(0.) / sum);
  EXPECT_EQ(result.categories(0).label(), "one");
  EXPECT_EQ(result.embedding_size(), 0);
}

TEST(ClassificationTest, SoftmaxOfLargeLogitsStaysFinite) {
  const v1::ClassifyResult result = Convert({1e30f, -1e30f, 0, 1e30f}, {});
  EXPECT_FLOAT_EQ(result.categories(0).score(), 0.5f);
  EXPECT_EQ(result.categories(3).score(), 0);
}

TEST(ClassificationTest, TiesGoByClassId) {
  EXPECT_EQ(Ids(Convert({2, 2, 5, 2}, {})), (std::vector<int>{2, 0, 1, 3}));
}

TEST(ClassificationTest, EqualScoresOfUnequalLogitsGoByClassId) {
  v1::ClassifyParams params;
  params.set_score_type(v1::ClassifyParams::SIGMOID);
  const v1::ClassifyResult result = Convert({40, 50, 1, 60}, params);
  EXPECT_EQ(Ids(result), (std::vector<int>{0, 1, 3, 2}));
  EXPECT_EQ(result.categories(2).score(), 1);
  params.set_top_k(2);
  EXPECT_EQ(Ids(Convert({40, 50, 1, 60}, params)), (std::vector<int>{0, 1}));
}

TEST(ClassificationTest, LogitAndSigmoid) {
  v1::ClassifyParams params;
  params.set_score_type(v1::ClassifyParams::LOGIT);
  EXPECT_EQ(Convert({1, 3, 0, 2}, params).categories(0).score(), 3);
  params.set_score_type(v1::ClassifyParams::SIGMOID);
  EXPECT_FLOAT_EQ(Convert({1, 3, 0, 2}, params).categories(3).score(), 0.5f);
}

TEST(ClassificationTest, TopKDefaultsToFive) {
  EXPECT_EQ(
      Ids(Convert({1, 2, 3, 4, 5, 6, 7}, {}, std::vector<std::string>(7))),
      (std::vector<int>{6, 5, 4, 3, 2}));
}

TEST(ClassificationTest, FilterChoosesWhoCompetesAndCountsRepeatsOnce) {
  v1::ClassifyParams params;
  for (int id : {2, 0, 2}) params.add_class_filter(id);
  const v1::ClassifyResult result = Convert({1, 3, 0, 2}, params);
  EXPECT_EQ(Ids(result), (std::vector<int>{0, 2}));
  EXPECT_EQ(result.categories(0).score(),
            Convert({1, 3, 0, 2}, {}).categories(2).score());
}

TEST(ClassificationTest, MinScoreLeavesOutWhatIsBelow) {
  v1::ClassifyParams params;
  params.set_score_type(v1::ClassifyParams::LOGIT);
  EXPECT_EQ(Convert({1, -3, 0, 2}, params).categories_size(), 4);
  params.set_min_score(1);
  EXPECT_EQ(Ids(Convert({1, -3, 0, 2}, params)), (std::vector<int>{3, 0}));
  params.set_min_score(-1);
  EXPECT_EQ(Convert({1, -3, 0, 2}, params).categories_size(), 3);
}

TEST(ClassificationTest, TheModelIsAskedForTheEmbeddingOnRequest) {
  for (const bool wanted : {false, true}) {
    v1::ClassifyParams params;
    params.set_include_embedding(wanted);
    batching::BatchTask task;
    MakeHandler(params)->FillTask(ModelOf(Labels()), &task);
    EXPECT_EQ(
        model::OptionsOf<model::ClassificationOptions>(task.options).embedding,
        wanted);
  }
}

TEST(ClassificationTest, EmbeddingOnRequest) {
  v1::ClassifyParams params;
  params.set_include_embedding(true);
  const v1::ClassifyResult result = Convert({1, 3, 0, 2}, params);
  ASSERT_EQ(result.embedding_size(), 2);
  EXPECT_EQ(result.embedding(1), -0.5f);
}

TEST(ClassificationTest, AnAnswersFloatsCountAsItsBytes) {
  v1::ClassifyParams params;
  params.set_include_embedding(true);
  const auto handler = MakeHandler(params);
  const repository::ModelDirectory model = ModelOf(Labels());
  model::Classification found{{1, 3, 0, 2}, std::vector<float>(100)};
  const auto encoder = handler->MakeEncoder(model, found, {});
  ASSERT_TRUE(encoder->EncodeNext().ok());
  EXPECT_GE(encoder->bytes(), 100 * 4);
}

v1::ClassifyResult ConvertHeatMap(const v1::ClassifyParams& params) {
  image::PictureFrame frame;
  frame.seen = {20, 30};
  model::Classification result{{1, 3, 0, 2}, {0.5f, -0.5f}};
  result.heat_map = {/*class_id=*/3, /*height=*/1, /*width=*/2, {1.5f, 2.5f}};
  return AnswerOf<v1::ClassifyResult>(params, ModelOf(Labels()), result, frame);
}

TEST(ClassificationTest, AHeatMapIsValuesOrAPng) {
  v1::ClassifyParams params;
  EXPECT_FALSE(ConvertHeatMap(params).has_heat_map());
  params.mutable_heat_map();
  const v1::HeatMap values = ConvertHeatMap(params).heat_map();
  EXPECT_EQ(values.class_id(), 3);
  EXPECT_EQ(values.height(), 1);
  EXPECT_EQ(values.width(), 2);
  ASSERT_EQ(values.values_size(), 2);
  EXPECT_EQ(values.values(1), 2.5f);
  EXPECT_EQ(values.png(), "");
  params.mutable_heat_map()->set_encoding(v1::HeatMapParams::PNG);
  const v1::ClassifyResult result = ConvertHeatMap(params);
  EXPECT_EQ(result.categories_size(), 4);
  EXPECT_EQ(result.heat_map().class_id(), 3);
  EXPECT_EQ(result.heat_map().height(), 20);
  EXPECT_EQ(result.heat_map().width(), 30);
  EXPECT_EQ(result.heat_map().low(), 1.5f);
  EXPECT_EQ(result.heat_map().high(), 2.5f);
  EXPECT_EQ(result.heat_map().values_size(), 0);
  EXPECT_NE(result.heat_map().png(), "");
}

// Returns the model options that a task asks for.
model::ClassificationOptions Asked(const v1::ClassifyParams& params) {
  batching::BatchTask task;
  MakeHandler(params)->FillTask(ModelOf(Labels()), &task);
  return model::OptionsOf<model::ClassificationOptions>(task.options);
}

TEST(ClassificationTest, AHeatMapIsOfTheClassOrOfTheBestOfTheFilter) {
  v1::ClassifyParams params;
  params.add_class_filter(2);
  EXPECT_FALSE(Asked(params).heat_map);
  params.mutable_heat_map();
  EXPECT_TRUE(Asked(params).heat_map);
  EXPECT_EQ(Asked(params).classes, std::vector<int>{2});
  params.mutable_heat_map()->set_class_id(0);
  EXPECT_EQ(Asked(params).classes, std::vector<int>{0});
}

TEST(ClassificationTest, AHeatMapNeedsAClassAndAMeanOfPositions) {
  v1::ClassifyParams params;
  repository::ModelDirectory model = ModelOf(Labels());
  for (const int id : {-1, 4}) {
    params.mutable_heat_map()->set_class_id(id);
    const absl::Status status = MakeHandler(params)->CheckParams(model);
    EXPECT_EQ(server::GetErrorDetail(status).field, "params.heat_map.class_id");
  }
  params.mutable_heat_map()->set_class_id(3);
  EXPECT_TRUE(MakeHandler(params)->CheckParams(model).ok());
  model.config.backbone.architecture = model::Architecture::kVim;
  const absl::Status status = MakeHandler(params)->CheckParams(model);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(server::GetErrorDetail(status).field, "params.heat_map");
}

}  // namespace
}  // namespace sfmamba::prediction
