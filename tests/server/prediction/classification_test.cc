// Results as a caller of sfmamba.v1 sees them.

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/prediction/through_proto.h"

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
  return AnswerThroughProto<ClassificationAnswer, v1::ClassifyResult>(
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

TEST(ClassificationTest, EmbeddingOnRequest) {
  v1::ClassifyParams params;
  params.set_include_embedding(true);
  const v1::ClassifyResult result = Convert({1, 3, 0, 2}, params);
  ASSERT_EQ(result.embedding_size(), 2);
  EXPECT_EQ(result.embedding(1), -0.5f);
}

}  // namespace
}  // namespace sfmamba::prediction
