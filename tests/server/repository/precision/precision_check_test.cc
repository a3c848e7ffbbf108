#include "server/repository/precision/precision_check.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sfmamba::repository {
namespace {

using testing::HasSubstr;

constexpr model::Precision kBf16 = model::Precision::kBFloat16;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

model::Result Logits(std::vector<float> logits) {
  model::Classification result;
  result.logits = std::move(logits);
  return result;
}

model::Result Map(std::vector<uint16_t> labels) {
  model::Segmentation result;
  result.height = 1;
  result.width = static_cast<int>(labels.size());
  result.labels = std::move(labels);
  return result;
}

model::Result Box(float x, float score) {
  model::Detections result;
  result.detections.push_back({{x, 0, x + 10, 10}, 1, score, nullptr});
  return result;
}

PrecisionCheck Compare(model::Result reduced, model::Result full) {
  return ComparePrecisions(kBf16, {std::move(reduced)}, {std::move(full)});
}

TEST(PrecisionCheckTest, CloseLogitsAreAllowed) {
  const PrecisionCheck check =
      Compare(Logits({0, 10.2f, 5}), Logits({0, 10, 5}));
  EXPECT_TRUE(check.allowed);
  EXPECT_THAT(check.figures, HasSubstr("by 2.00 % of their range"));
  EXPECT_THAT(check.figures, HasSubstr("at most 3 %"));
  EXPECT_THAT(check.figures, HasSubstr("on 1 of 1 images"));
  EXPECT_FALSE(Compare(Logits({0, 10.4f, 5}), Logits({0, 10, 5})).allowed);
  EXPECT_FALSE(Compare(Logits({5, 10.4f, 9}), Logits({5, 10, 9})).allowed);
  EXPECT_FALSE(Compare(Logits({0.4f, 10, 5}), Logits({0, 10, 5})).allowed);
}

TEST(PrecisionCheckTest, AnotherFirstClassIsAllowedOnlyInATie) {
  EXPECT_TRUE(Compare(Logits({0, 9.9f, 10}), Logits({0, 10, 9.95f})).allowed);
  EXPECT_FALSE(Compare(Logits({0, 9.8f, 9.9f}), Logits({0, 10, 9.8f})).allowed)
      << "the logits are close";
}

TEST(PrecisionCheckTest, WhatLiesBehindTheLogitsIsNotRead) {
  const auto without_last = [](std::vector<float> logits) {
    logits.pop_back();  // The removed value stays in memory.
    return Logits(std::move(logits));
  };
  std::vector<model::Result> reduced, full;
  reduced.push_back(without_last({0, 10, 5, 0}));
  full.push_back(without_last({0, 10, 5, 1000}));
  EXPECT_TRUE(ComparePrecisions(kBf16, reduced, full).allowed);
}

TEST(PrecisionCheckTest, EachImageCounts) {
  const model::Result good = Logits({0, 10, 5}), bad = Logits({5, 10, 0});
  EXPECT_TRUE(ComparePrecisions(kBf16, {good, good}, {good, good}).allowed);
  const PrecisionCheck check =
      ComparePrecisions(kBf16, {good, bad, good}, {good, good, good});
  EXPECT_FALSE(check.allowed);
  EXPECT_THAT(check.figures, HasSubstr("by 50.00 %"));
}

TEST(PrecisionCheckTest, ValuesThatAreNotFiniteAreNotAllowed) {
  EXPECT_FALSE(Compare(Logits({0, kNan}), Logits({0, 1})).allowed);
  EXPECT_FALSE(Compare(Logits({0, 1}), Logits({0, kNan})).allowed);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(Compare(Logits({0, infinity}), Logits({0, 1})).figures,
              HasSubstr("not finite"));
  model::Segmentation map;
  map.labels = {1};
  map.finite = false;
  EXPECT_FALSE(Compare(map, Map({1})).allowed);
  model::Detections boxes;
  boxes.finite = false;
  EXPECT_FALSE(Compare(boxes, model::Detections()).allowed);
}

TEST(PrecisionCheckTest, LogitsWithoutARangeMustBeEqual) {
  EXPECT_TRUE(Compare(Logits({3, 3}), Logits({3, 3})).allowed);
  EXPECT_FALSE(Compare(Logits({3, 3.1f}), Logits({3, 3})).allowed);
  EXPECT_TRUE(Compare(Logits({3}), Logits({3})).allowed);
}

TEST(PrecisionCheckTest, MapsMayDifferInOnePixelOfAHundred) {
  const std::vector<uint16_t> full(200, 7);
  std::vector<uint16_t> reduced = full;
  reduced[0] = reduced[1] = 8;
  const PrecisionCheck check = Compare(Map(reduced), Map(full));
  EXPECT_TRUE(check.allowed);
  EXPECT_THAT(check.figures, HasSubstr("99.00 % of the pixels"));
  EXPECT_THAT(check.figures, HasSubstr("at least 99 %"));
  reduced[2] = 8;
  EXPECT_FALSE(Compare(Map(reduced), Map(full)).allowed);
}

TEST(PrecisionCheckTest, SureDetectionsMustBeFound) {
  EXPECT_TRUE(Compare(Box(0.1f, 0.91f), Box(0, 0.9f)).allowed);
  EXPECT_FALSE(Compare(Box(5, 0.9f), Box(0, 0.9f)).allowed);
  EXPECT_FALSE(Compare(model::Detections(), Box(0, 0.9f)).allowed);
  EXPECT_FALSE(Compare(Box(0, 0.9f), model::Detections()).allowed);
}

TEST(PrecisionCheckTest, AnswersThatCannotBeComparedAreNotAllowed) {
  EXPECT_FALSE(ComparePrecisions(kBf16, {}, {}).allowed);
  EXPECT_FALSE(ComparePrecisions(kBf16, {}, {Logits({1})}).allowed);
  EXPECT_FALSE(Compare(Logits({1}), Logits({1, 2})).allowed);
  EXPECT_THAT(Compare(Map({1}), Map({1, 2})).figures, HasSubstr("in size"));
  EXPECT_FALSE(Compare(Map({1}), Map({1, 2})).allowed);
  EXPECT_FALSE(Compare(Map({}), Map({})).allowed);
  EXPECT_FALSE(Compare(Map({1}), Logits({1})).allowed);
  EXPECT_FALSE(Compare(Logits({}), Logits({})).allowed);
}

}  // namespace
}  // namespace sfmamba::repository
