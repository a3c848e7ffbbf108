#include "client/eval/scores.h"

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::client {
namespace {

IndexMap Map(int width, std::vector<uint16_t> data) {
  IndexMap map;
  map.width = width;
  map.height = data.size() / width;
  map.ignore = 255;
  map.data = std::move(data);
  return map;
}

TEST(TopKScoreTest, CountsRanks) {
  TopKScore score;
  EXPECT_EQ(score.Top(1), 0);
  for (const int rank : {0, 4, 5, -1}) score.Add(rank);
  EXPECT_EQ(score.count(), 4);
  EXPECT_EQ(score.Top(1), 0.25);
  EXPECT_EQ(score.Top(4), 0.25);
  EXPECT_EQ(score.Top(5), 0.5);
}

TEST(ConfusionTest, IsTheMeanOverTheClassesThereAre) {
  Confusion score;
  // Class 0 is right in 2 of 3 pixels, class 2 in 1 of 3, and class 7 in 0 of
  // 1.
  ASSERT_TRUE(
      score.Add(Map(3, {0, 0, 2, 2, 0, 7}), Map(3, {0, 0, 2, 0, 2, 2})).ok());
  EXPECT_DOUBLE_EQ(score.MeanIou(), (2 / 4.0 + 1 / 4.0 + 0) / 3);
  EXPECT_DOUBLE_EQ(score.Accuracy(), 3 / 6.0);
}

TEST(ConfusionTest, AddsMapsUp) {
  Confusion score;
  ASSERT_TRUE(score.Add(Map(2, {1, 1}), Map(2, {1, 1})).ok());
  ASSERT_TRUE(score.Add(Map(2, {1, 1}), Map(2, {3, 3})).ok());
  EXPECT_DOUBLE_EQ(score.MeanIou(), (0.5 + 0) / 2);
}

TEST(ConfusionTest, LeavesIgnoredPixelsOut) {
  Confusion score;
  ASSERT_TRUE(score.Add(Map(3, {255, 1, 1}), Map(3, {2, 1, 255})).ok());
  // A pixel whose answer is 255 counts as wrong.
  EXPECT_DOUBLE_EQ(score.MeanIou(), 0.5);
  EXPECT_DOUBLE_EQ(score.Accuracy(), 0.5);
}

TEST(ConfusionTest, NothingIsZero) {
  EXPECT_EQ(Confusion().MeanIou(), 0);
  EXPECT_EQ(Confusion().Accuracy(), 0);
}

TEST(ConfusionTest, CountsByClass) {
  Confusion score;
  score.Add(0, 0, 3);
  score.Add(0, 2);
  score.Add(2, 2);
  score.Add(2, Confusion::kNone);
  score.Add(2, 5);
  EXPECT_EQ(score.at(0, 0), 3);
  EXPECT_EQ(score.at(2, Confusion::kNone), 1);
  EXPECT_EQ(score.at(1, 0), 0);
  EXPECT_EQ(score.at(0, 1), 0);
  const std::map<int, Confusion::Counts> classes = score.Classes();
  // kNone is not counted as a class.
  ASSERT_EQ(classes.size(), 3);
  EXPECT_DOUBLE_EQ(classes.at(0).Recall(), 3 / 4.0);
  EXPECT_DOUBLE_EQ(classes.at(0).Precision(), 1);
  EXPECT_DOUBLE_EQ(classes.at(2).Recall(), 1 / 3.0);
  EXPECT_DOUBLE_EQ(classes.at(2).Precision(), 1 / 2.0);
  EXPECT_DOUBLE_EQ(classes.at(2).Iou(), 1 / 4.0);
  EXPECT_TRUE(std::isnan(classes.at(5).Recall()));
  EXPECT_DOUBLE_EQ(score.Accuracy(), 4 / 7.0);
}

TEST(ConfusionTest, SizesMustAgree) {
  Confusion score;
  const absl::Status status = score.Add(Map(2, {1, 1}), Map(1, {1, 1}));
  EXPECT_EQ(status.message(), "the map is 2x1, the answer 1x2");
}

}  // namespace
}  // namespace sfmamba::client
