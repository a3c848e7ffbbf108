#include "server/repository/golden.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "gtest/gtest.h"

namespace sfmamba::repository {
namespace {

namespace fs = std::filesystem;
using batching::Executor;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

model::Result Logits(std::vector<float> logits) {
  model::Classification result;
  result.logits = std::move(logits);
  return result;
}

model::Result Found(std::vector<model::Detection> detections) {
  model::Detections result;
  result.detections = std::move(detections);
  return result;
}

model::Result Map(std::vector<uint16_t> labels) {
  model::Segmentation result;
  result.height = 10;
  result.width = static_cast<int>(labels.size()) / 10;
  result.labels = std::move(labels);
  return result;
}

class GoldenTest : public testing::Test {
 protected:
  GoldenTest()
      : folder_(fs::path(testing::TempDir()) / "golden" /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    config_.num_classes = 3;
  }

  GoldenImage Image(model::Result result) {
    GoldenImage image;
    image.height = 10;
    image.width = 20;
    image.pixels.assign(600, 7);
    image.result = std::move(result);
    return image;
  }

  absl::StatusOr<std::vector<Executor::Probe>> Read() {
    return ReadGolden({folder_.string(), ""}, config_);
  }

  const fs::path folder_;
  model::ModelConfig config_;
};

TEST_F(GoldenTest, WithoutAFileThereIsNothingToCheck) {
  const auto probes = Read();
  ASSERT_TRUE(probes.ok());
  EXPECT_TRUE(probes->empty());
}

TEST_F(GoldenTest, ReadsWhatItWrote) {
  const model::Result results[] = {
      Logits({1, 2, 3}),
      Found({{{1, 2, 8, 9}, 2, 0.9f, nullptr}, {{0, 0, 3, 3}, 1, 0.1f}}),
      Map(std::vector<uint16_t>(200, 300))};
  const model::VisionTask tasks[] = {model::VisionTask::kClassification,
                                     model::VisionTask::kDetection,
                                     model::VisionTask::kSegmentation};
  for (int i = 0; i < 3; ++i) {
    config_.task = tasks[i];
    ASSERT_TRUE(
        WriteGolden(folder_.string(), {Image(results[i]), Image(results[i])})
            .ok());
    const auto probes = Read();
    ASSERT_TRUE(probes.ok()) << probes.status();
    ASSERT_EQ(probes->size(), 2);
    EXPECT_EQ(probes->at(1).height, 10);
    EXPECT_EQ(probes->at(1).width, 20);
    EXPECT_EQ(probes->at(1).pixels, std::vector<uint8_t>(600, 7));
    EXPECT_TRUE(probes->at(0).check(results[i]).ok());
    const absl::Status other = probes->at(1).check(results[(i + 1) % 3]);
    EXPECT_NE(other.message().find("golden image 1: "), std::string::npos)
        << other;
  }
}

TEST_F(GoldenTest, NoDetectionsAreAResultToo) {
  config_.task = model::VisionTask::kDetection;
  ASSERT_TRUE(WriteGolden(folder_.string(), {Image(Found({}))}).ok());
  const auto probes = Read();
  ASSERT_TRUE(probes.ok()) << probes.status();
  EXPECT_TRUE(probes->at(0).check(Found({})).ok());
}

TEST_F(GoldenTest, MayHaveSixtyFourImages) {
  std::vector<GoldenImage> images(64, Image(Logits({1, 2, 3})));
  ASSERT_TRUE(WriteGolden(folder_.string(), images).ok());
  EXPECT_EQ(Read()->size(), 64);
  images.push_back(images[0]);
  ASSERT_TRUE(WriteGolden(folder_.string(), images).ok());
  EXPECT_EQ(Read().status().message(),
            "golden/golden.safetensors: expected at most 64 images");
}

TEST_F(GoldenTest, NamesTheTensorThatIsWrong) {
  ASSERT_TRUE(WriteGolden(folder_.string(), {Image(Logits({1, 2}))}).ok());
  EXPECT_EQ(Read().status().message(),
            "golden/golden.safetensors: logits.0: got F32 [2], expected F32 "
            "[3]");
  config_.task = model::VisionTask::kDetection;
  EXPECT_EQ(Read().status().message(),
            "golden/golden.safetensors: boxes.0: is missing");
  std::ofstream(folder_ / "golden/golden.safetensors") << "text";
  EXPECT_EQ(Read().status().message(),
            "golden/golden.safetensors: is no safetensors file");
}

TEST_F(GoldenTest, TheFileMustLieInTheFolder) {
  ASSERT_TRUE(WriteGolden(folder_.string() + "-2", {Image(Logits({}))}).ok());
  fs::create_directory_symlink(folder_.string() + "-2/golden",
                               folder_ / "golden");
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CheckResultTest, LogitsMayDifferALittle) {
  const model::Result expected = Logits({0, 10, -10});
  EXPECT_TRUE(CheckResult(Logits({0.9f, 10, -10}), expected).ok());
  EXPECT_FALSE(CheckResult(Logits({1.1f, 10, -10}), expected).ok());
  EXPECT_FALSE(CheckResult(Logits({kNan, 10, -10}), expected).ok());
  EXPECT_FALSE(CheckResult(Logits({0, 10}), expected).ok());
}

TEST(CheckResultTest, LogitsWithoutARangeMustBeEqual) {
  EXPECT_TRUE(CheckResult(Logits({3, 3}), Logits({3, 3})).ok());
  EXPECT_FALSE(CheckResult(Logits({3, 3.001f}), Logits({3, 3})).ok());
}

TEST(CheckResultTest, WhatLiesBehindLogitsIsNotRead) {
  model::Classification got, expected;
  got.logits = {0, 10, 1000};
  expected.logits = {0, 10, -1000};
  // pop_back() leaves the last values in memory, behind the ends of the
  // vectors. If CheckResult() read past the ends, it would find a difference.
  got.logits.pop_back();
  expected.logits.pop_back();
  EXPECT_TRUE(CheckResult(std::move(got), std::move(expected)).ok());
}

TEST(CheckResultTest, SureDetectionsMustBeThere) {
  const model::Detection sure = {{0, 0, 10, 10}, 1, 0.9f, nullptr};
  const model::Detection unsure = {{5, 5, 10, 10}, 1, 0.3f, nullptr};
  model::Detection near = sure, other_class = sure, faint = sure;
  near.box.x2 = 9;
  near.score = 0.85f;
  other_class.class_id = 2;
  faint.score = 0.7f;
  EXPECT_TRUE(CheckResult(Found({near}), Found({sure, unsure})).ok());
  EXPECT_TRUE(CheckResult(Found({sure, unsure}), Found({sure})).ok());
  for (const model::Detection& wrong : {other_class, faint}) {
    EXPECT_FALSE(CheckResult(Found({wrong}), Found({sure})).ok());
  }
  for (const model::Box& far : {model::Box{5, 0, 10, 10},
                                {0, 5, 10, 10},
                                {0, 0, 5, 10},
                                {0, 0, 10, 5},
                                {0, 0, 20, 10},
                                {20, 20, 30, 30}}) {
    model::Detection wrong = sure;
    wrong.box = far;
    EXPECT_FALSE(CheckResult(Found({wrong}), Found({sure})).ok());
  }
  near.box.x2 = 8;
  EXPECT_TRUE(CheckResult(Found({near}), Found({sure})).ok());
  near.box.x2 = 7.9f;
  EXPECT_FALSE(CheckResult(Found({near}), Found({sure})).ok());
  EXPECT_FALSE(CheckResult(Found({}), Found({sure})).ok());
  EXPECT_FALSE(CheckResult(Found({sure}), Found({})).ok());
  model::Detection almost = sure;
  almost.box = {20, 20, 30, 30};
  almost.score = 0.59f;
  EXPECT_TRUE(CheckResult(Found({sure, almost}), Found({sure})).ok());
  almost.score = 0.61f;
  EXPECT_FALSE(CheckResult(Found({sure, almost}), Found({sure})).ok());
  model::Detection empty = sure;
  empty.box = {3, 3, 3, 3};
  EXPECT_TRUE(CheckResult(Found({empty}), Found({empty})).ok());
  model::Detections broken;
  broken.finite = false;
  EXPECT_FALSE(CheckResult(broken, Found({})).ok());
}

TEST(CheckResultTest, NearlyAllPixelsMustBeEqual) {
  const std::vector<uint16_t> expected(200, 1);
  std::vector<uint16_t> got = expected;
  for (int i = 0; i < 4; ++i) got[i] = 2;
  EXPECT_TRUE(CheckResult(Map(got), Map(expected)).ok());
  got[4] = 2;
  EXPECT_FALSE(CheckResult(Map(got), Map(expected)).ok());
  got.resize(190);
  EXPECT_FALSE(CheckResult(Map(got), Map(expected)).ok());
}

TEST(CheckResultTest, WhatLiesBehindAMapIsNotRead) {
  std::vector<uint16_t> got(101, 0), expected(101, 0);
  got[0] = got[1] = got[2] = 1;
  // pop_back() leaves the last values in memory, behind the ends of the
  // vectors. If CheckResult() read past the ends, it would find 98 equal
  // pixels, which are enough.
  got.pop_back();
  expected.pop_back();
  EXPECT_FALSE(CheckResult(Map(std::move(got)), Map(std::move(expected))).ok())
      << "97 of 100 pixels are right";
}

TEST(BlackProbeTest, IsOfTheInputsSizeAndFindsWhatIsNotFinite) {
  model::ModelConfig config;
  config.image_size = 5;
  const Executor::Probe probe = BlackProbe(config);
  EXPECT_EQ(probe.pixels, std::vector<uint8_t>(75));
  EXPECT_TRUE(probe.check(Logits({1, 2})).ok());
  EXPECT_EQ(probe.check(Logits({1, kNan})).code(), absl::StatusCode::kInternal);
  model::Segmentation broken;
  broken.finite = false;
  EXPECT_FALSE(probe.check(broken).ok());
}

}  // namespace
}  // namespace sfmamba::repository
