#include "client/eval/agreement.h"

#include <cmath>
#include <string>

#include "gtest/gtest.h"

namespace sfmamba::client {
namespace {

void AddBox(float x, float score, const std::string& label,
            v1::DetectResult* result) {
  v1::Detection* detection = result->add_detections();
  detection->set_label(label);
  detection->set_score(score);
  detection->mutable_box()->set_x_min(x);
  detection->mutable_box()->set_x_max(x + 100);
  detection->mutable_box()->set_y_max(10);
}

double Matched(const v1::DetectResult& result,
               const v1::DetectResult& reference) {
  BoxAgreement agreement;
  agreement.Add(result, reference);
  return agreement.Matched();
}

TEST(LogitAgreementTest, CountsFirstClasses) {
  LogitAgreement agreement;
  EXPECT_TRUE(std::isnan(agreement.SameFirstClass()));
  agreement.Add({1, 3, 2}, {0, 9, 8});
  agreement.Add({1, 3, 2}, {0, 8, 9});
  EXPECT_EQ(agreement.SameFirstClass(), 0.5);
  // If logits are equal, the first class counts.
  agreement.Add({2, 2}, {2, 1});
  EXPECT_DOUBLE_EQ(agreement.SameFirstClass(), 2 / 3.0);
}

TEST(LogitAgreementTest, MeasuresDifferencesByTheReferencesDeviation) {
  LogitAgreement agreement;
  agreement.Add({12, 8}, {11, 9});  // The differences are 1 and -1.
  EXPECT_DOUBLE_EQ(agreement.Rms(), 1);
  agreement.Add({11, 9}, {11, 9});
  EXPECT_DOUBLE_EQ(agreement.Rms(), std::sqrt(0.5));
  // A constant difference between the models counts too.
  LogitAgreement constant;
  constant.Add({4, 2}, {3, 1});
  EXPECT_DOUBLE_EQ(constant.Rms(), 1);
}

TEST(BoxAgreementTest, MatchesOneToOneByLabelAndOverlap) {
  v1::DetectResult reference, result;
  AddBox(0, 0.9, "cup", &reference);
  AddBox(0, 0.9, "cup", &result);
  EXPECT_EQ(Matched(result, reference), 1);
  // This box overlaps the reference's cup, which already has a match.
  AddBox(1, 0.8, "cup", &result);
  EXPECT_DOUBLE_EQ(Matched(result, reference), 2 / 3.0);
  AddBox(1, 0.8, "chair", &reference);
  EXPECT_DOUBLE_EQ(Matched(result, reference), 2 / 4.0);
  // The overlap with the second box is 96 / 104.
  AddBox(5, 0.8, "cup", &reference);
  EXPECT_DOUBLE_EQ(Matched(result, reference), 4 / 5.0);
}

TEST(BoxAgreementTest, EachBoxTakesTheOneThatItOverlapsMost) {
  v1::DetectResult reference, result;
  for (const float x : {3, 0}) AddBox(x, 0.9, "cup", &reference);
  for (const float x : {0, 3}) AddBox(x, 0.9, "cup", &result);
  // The box at 3 has a better match, so this box has none.
  AddBox(8, 0.9, "cup", &reference);
  EXPECT_DOUBLE_EQ(Matched(result, reference), 4 / 5.0);
}

TEST(BoxAgreementTest, OnlySureBoxesCount) {
  v1::DetectResult reference, result;
  AddBox(0, 0.5, "cup", &reference);
  AddBox(50, 0.4, "cup", &result);
  EXPECT_TRUE(std::isnan(Matched(result, reference)));
  AddBox(0, 0.51, "cup", &result);
  EXPECT_EQ(Matched(result, reference), 0);
}

}  // namespace
}  // namespace sfmamba::client
