#include "server/prediction/softmax.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::prediction {
namespace {

// Returns the softmax, computed by its definition in double precision.
std::vector<double> Expected(const std::vector<float>& logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  std::vector<double> scores;
  double sum = 0;
  for (const float logit : logits) {
    sum += scores.emplace_back(std::exp(logit - max));
  }
  for (double& score : scores) score /= sum;
  return scores;
}

TEST(SoftmaxTest, IsExactForAnyNumberOfClasses) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(3, 8);
  for (const int classes : {1, 2, 15, 16, 17, 31, 32, 33, 150, 1000, 21841}) {
    std::vector<float> logits(classes);
    for (float& logit : logits) logit = normal(random);
    const std::vector<float> scores = Softmax(logits);
    const std::vector<double> expected = Expected(logits);
    ASSERT_EQ(scores.size(), expected.size());
    for (int i = 0; i < classes; ++i) {
      ASSERT_NEAR(scores[i], expected[i], std::min(1e-6, 1e-5 * expected[i]))
          << i;
    }
  }
}

TEST(SoftmaxTest, TakesLogitsOfAnyMagnitude) {
  EXPECT_EQ(Softmax({3e38f, -3e38f, 0, 3e38f}),
            (std::vector<float>{0.5f, 0, 0, 0.5f}));
  EXPECT_EQ(Softmax({-3e38f, -3e38f}), (std::vector<float>{0.5f, 0.5f}));
}

TEST(SoftmaxTest, EqualLogitsHaveEqualScoresWhereverTheyStand) {
  for (float logit = -9; logit < 2; logit += 0.0371f) {
    std::vector<float> logits(37, logit);
    logits[20] = 2;
    const std::vector<float> scores = Softmax(logits);
    EXPECT_EQ(std::count(scores.begin(), scores.end(), scores[0]), 36) << logit;
  }
}

TEST(SoftmaxTest, KeepsTheOrderOfLogits) {
  std::vector<float> logits;
  for (float logit = -87; logit < 0; logit += 0.001f) logits.push_back(logit);
  const std::vector<float> scores = Softmax(logits);
  EXPECT_TRUE(std::is_sorted(scores.begin(), scores.end()));
  EXPECT_GT(scores[0], 0);
}

TEST(SoftmaxTest, OfNoClassesIsEmpty) { EXPECT_TRUE(Softmax({}).empty()); }

}  // namespace
}  // namespace sfmamba::prediction
