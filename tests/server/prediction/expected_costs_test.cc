#include "server/prediction/expected_costs.h"

#include "gtest/gtest.h"

namespace sfmamba::prediction {
namespace {

ImageFacts Facts(absl::string_view format, int64_t pixels) {
  ImageFacts facts;
  facts.format = format;
  facts.pixels = pixels;
  return facts;
}

TEST(LearnedFactorTest, FollowsWhatIsMeasured) {
  LearnedFactor factor;
  EXPECT_EQ(factor.value(), 1);
  for (int i = 0; i < 100; ++i) {
    factor.Add(absl::Milliseconds(2), absl::Milliseconds(6));
  }
  EXPECT_NEAR(factor.value(), 3, 0.01);
  for (int i = 0; i < 100; ++i) {
    factor.Add(absl::Milliseconds(2), absl::Milliseconds(1));
  }
  EXPECT_NEAR(factor.value(), 0.5, 0.01);
}

TEST(LearnedFactorTest, OneThreadThatHadToWaitChangesLittle) {
  LearnedFactor factor;
  factor.Add(absl::Milliseconds(1), absl::Seconds(10));
  EXPECT_LT(factor.value(), 1.4);
}

TEST(LearnedFactorTest, StaysInItsRange) {
  LearnedFactor factor;
  for (int i = 0; i < 1000; ++i) {
    factor.Add(absl::Milliseconds(1), absl::ZeroDuration());
  }
  EXPECT_EQ(factor.value(), 0.25);
  for (int i = 0; i < 1000; ++i) {
    factor.Add(absl::Milliseconds(1), absl::InfiniteDuration());
  }
  EXPECT_EQ(factor.value(), 4) << "however slow one client's pictures are";
}

TEST(LearnedFactorTest, WhatIsShortTeachesNothing) {
  LearnedFactor factor;
  factor.Add(absl::Microseconds(49), absl::Milliseconds(6));
  factor.Add(absl::ZeroDuration(), absl::Milliseconds(6));
  EXPECT_EQ(factor.value(), 1);
  factor.Add(absl::Microseconds(50), absl::Milliseconds(6));
  EXPECT_GT(factor.value(), 1);
}

TEST(ExpectedCostsTest, LearnEachFormatByItself) {
  ExpectedCosts costs;
  const ImageFacts jpeg = Facts("jpeg", 1'000'000);
  const ImageFacts png = Facts("png", 1'000'000);
  EXPECT_EQ(costs.Decode(jpeg), absl::Milliseconds(6));
  EXPECT_EQ(costs.Decode(png), absl::Milliseconds(25));
  for (int i = 0; i < 100; ++i) costs.Decoded(jpeg, absl::Milliseconds(12));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(costs.Decode(jpeg)), 12, 0.1);
  EXPECT_EQ(costs.Decode(png), absl::Milliseconds(25));
  // A file of unknown format is refused without decoding. Its expected time is
  // still above zero.
  EXPECT_GT(costs.Decode(Facts("unknown", 1'000'000)), absl::ZeroDuration());
}

TEST(ExpectedCostsTest, TheInputsOfADividedPictureTakeTimeToo) {
  const ExpectedCosts costs;
  ImageFacts facts = Facts("jpeg", 1'000'000);
  facts.input_bytes = 2'000'000;
  EXPECT_EQ(costs.Decode(facts), absl::Milliseconds(6));
  facts.parts.resize(2);
  EXPECT_EQ(costs.Decode(facts), absl::Milliseconds(8));
}

TEST(ExpectedCostsTest, LearnEachTasksAnswersByThemselves) {
  ExpectedCosts costs;
  const absl::Duration cost = absl::Milliseconds(4);
  for (int i = 0; i < 100; ++i) {
    costs.Encoded(model::VisionTask::kDetection, cost, 2 * cost);
  }
  EXPECT_NEAR(absl::ToDoubleMilliseconds(
                  costs.Encode(model::VisionTask::kDetection, cost)),
              8, 0.1);
  EXPECT_EQ(costs.Encode(model::VisionTask::kSegmentation, cost), cost);
}

}  // namespace
}  // namespace sfmamba::prediction
