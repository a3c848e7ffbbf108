// Tests detection results as a caller of sfmamba.v1 receives them.

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/masks.h"
#include "tests/server/prediction/encoded_answer.h"
#include "tests/testing/line_masks.h"

namespace sfmamba::prediction {
namespace {

using MaskEncoding = v1::DetectParams::MaskEncoding;

const std::vector<std::string>& Labels() {
  static const auto* const labels =
      new std::vector<std::string>{"zero", "one", "two"};
  return *labels;
}

// Returns a crop of 30 x 20 pixels at (10, 40) in a picture of 100 x 80 pixels.
image::PictureFrame Frame() {
  image::PictureFrame frame;
  frame.picture = {80, 100};
  frame.left = 10;
  frame.top = 40;
  return frame;
}

model::Detection MakeDetection(model::Box box, int class_id = 1,
                               float score = 0.5f) {
  model::Detection detection;
  detection.box = box;
  detection.class_id = class_id;
  detection.score = score;
  detection.mask = std::make_shared<PixelMask>(base::Mask());
  return detection;
}

// Returns a mask with all pixels set.
base::Mask MakeMask(int left, int top, int width, int height) {
  return {left, top, width, height, std::vector<uint8_t>(width * height, 1)};
}

v1::DetectResult Convert(
    std::vector<model::Detection> detections,
    const image::PictureFrame& frame = Frame(),
    MaskEncoding encoding = v1::DetectParams::MASK_ENCODING_UNSPECIFIED) {
  repository::ModelDirectory model = ModelOf(Labels());
  model.config.detector.masks = true;
  v1::DetectParams params;
  params.set_mask_encoding(encoding);
  return AnswerOf<v1::DetectResult>(
      params, model, model::Detections{std::move(detections)}, frame);
}

std::vector<float> Corners(const v1::BoundingBox& box) {
  return {box.x_min(), box.y_min(), box.x_max(), box.y_max()};
}

// PNGs are encoded row by row, and run lengths column by column.
TEST(DetectionTest, AMasksExpectedTimeGrowsWithTheLinesOfItsEncoding) {
  repository::ModelDirectory model = ModelOf(Labels());
  model.config.detector.masks = true;
  const auto longest = [&](MaskEncoding encoding, int height, int width) {
    v1::DetectParams params;
    params.set_mask_encoding(encoding);
    params.set_max_detections(1);
    ImageFacts facts;
    facts.seen = {height, width};
    return MakeHandler(params)->LongestAnswer(model, facts);
  };
  EXPECT_GT(longest(v1::DetectParams::PNG_CROP, 4000, 100),
            4 * longest(v1::DetectParams::PNG_CROP, 100, 4000));
  EXPECT_GT(longest(v1::DetectParams::COCO_RLE, 100, 4000),
            4 * longest(v1::DetectParams::COCO_RLE, 4000, 100));
}

TEST(DetectionTest, NothingFoundStillTellsThePicturesSize) {
  const v1::DetectResult result = Convert({});
  EXPECT_EQ(result.detections_size(), 0);
  EXPECT_EQ(result.image_width(), 100);
  EXPECT_EQ(result.image_height(), 80);
}

TEST(DetectionTest, KeepsOrderClassAndScore) {
  const v1::DetectResult result =
      Convert({MakeDetection({1, 2, 3, 4}, 2, 0.9f),
               MakeDetection({5, 6, 7, 8}, 0, 0.25f)});
  ASSERT_EQ(result.detections_size(), 2);
  EXPECT_EQ(result.detections(0).class_id(), 2);
  EXPECT_EQ(result.detections(0).label(), "two");
  EXPECT_EQ(result.detections(0).score(), 0.9f);
  EXPECT_EQ(result.detections(1).label(), "zero");
  EXPECT_EQ(result.detections(1).score(), 0.25f);
  EXPECT_EQ(result.detections(0).mask_case(), v1::Detection::MASK_NOT_SET);
}

TEST(DetectionTest, BoxesAreOfTheWholePictureAndClipped) {
  const v1::DetectResult result = Convert(
      {MakeDetection({1.5f, 2, 30, 20}), MakeDetection({-50, -50, 200, 200})});
  EXPECT_EQ(Corners(result.detections(0).box()),
            (std::vector<float>{11.5f, 42, 40, 60}));
  EXPECT_EQ(Corners(result.detections(1).box()),
            (std::vector<float>{0, 0, 100, 80}));
}

TEST(DetectionTest, RleMasksAreOfTheWholePicture) {
  model::Detection detection = MakeDetection({2, 3, 6, 5});
  base::Mask mask = MakeMask(2, 3, 4, 2);
  mask.data[0] = 0;
  detection.mask = std::make_shared<PixelMask>(mask);
  const v1::DetectResult result =
      Convert({detection}, Frame(), v1::DetectParams::COCO_RLE);
  const v1::CocoRle& rle = result.detections(0).rle();
  EXPECT_EQ(rle.height(), 80);
  EXPECT_EQ(rle.width(), 100);
  std::vector<int> expected(8000);
  for (int y : {43, 44}) {
    for (int x = 12; x < 16; ++x) expected[y * 100 + x] = 1;
  }
  expected[43 * 100 + 12] = 0;
  EXPECT_EQ(server::DecodeRle(rle.counts(), 80, 100), expected);
}

TEST(DetectionTest, AnEmptyMaskIsAMaskStill) {
  const v1::DetectResult rle = Convert({MakeDetection({2, 3, 2, 5})}, Frame(),
                                       v1::DetectParams::COCO_RLE);
  EXPECT_EQ(server::DecodeRle(rle.detections(0).rle().counts(), 80, 100),
            std::vector<int>(8000));
  const v1::DetectResult png = Convert({MakeDetection({2, 3, 2, 5})}, Frame(),
                                       v1::DetectParams::PNG_CROP);
  const server::GreyPng decoded =
      server::DecodeGreyPng(png.detections(0).png_crop());
  EXPECT_EQ(decoded.width, 1);
  EXPECT_EQ(decoded.values, std::vector<int>(2));
}

TEST(DetectionTest, PngMasksCoverTheBoxRoundedOutwards) {
  // The model's mask reaches one pixel beyond the rounded box on each side, see
  // kernels::MaskArea(). The PNG must contain only the rounded box.
  model::Detection detection = MakeDetection({2.5f, 3.25f, 11.5f, 5});
  base::Mask mask = MakeMask(1, 2, 12, 4);
  mask.data[1 * 12 + 2] = 0;  // This is pixel (3, 3) of the crop.
  detection.mask = std::make_shared<PixelMask>(mask);
  const v1::DetectResult result =
      Convert({detection}, Frame(), v1::DetectParams::PNG_CROP);
  const server::GreyPng png =
      server::DecodeGreyPng(result.detections(0).png_crop());
  EXPECT_EQ(png.bit_depth, 1);
  EXPECT_EQ(png.width, 10);  // The columns are 2 to 12.
  EXPECT_EQ(png.height, 2);  // The rows are 3 to 5.
  std::vector<int> expected(20, 1);
  expected[1] = 0;
  EXPECT_EQ(png.values, expected);
}

TEST(DetectionTest, PngMasksSmallerThanTheirBoxArePlacedInIt) {
  model::Detection detection = MakeDetection({0, 0, 20, 10});
  detection.mask = std::make_shared<PixelMask>(MakeMask(17, 8, 2, 1));
  const v1::DetectResult result =
      Convert({detection}, Frame(), v1::DetectParams::PNG_CROP);
  const server::GreyPng png =
      server::DecodeGreyPng(result.detections(0).png_crop());
  std::vector<int> expected(200);
  expected[8 * 20 + 17] = expected[8 * 20 + 18] = 1;
  EXPECT_EQ(png.values, expected);
}

TEST(DetectionTest, AMasksRunsBesideItsBoxAreLeftOut) {
  model::Detection detection = MakeDetection({0, 0, 8, 2});
  base::Mask mask = MakeMask(0, 0, 12, 2);
  for (const int x : {2, 3, 8, 12 + 0, 12 + 1, 12 + 7, 12 + 8}) {
    mask.data[x] = 0;
  }
  detection.mask = std::make_shared<PixelMask>(mask);
  const v1::DetectResult result =
      Convert({detection}, Frame(), v1::DetectParams::PNG_CROP);
  const server::GreyPng png =
      server::DecodeGreyPng(result.detections(0).png_crop());
  EXPECT_EQ(png.values, (std::vector<int>{1, 1, 0, 0, 1, 1, 1, 1,  //
                                          0, 0, 1, 1, 1, 1, 1, 0}));
}

// Each row has random runs. A PNG packs eight pixels into a byte, so the widths
// are near multiples of 8.
TEST(DetectionTest, PngMasksOfAnyRowsComeBack) {
  std::mt19937 random(1);
  for (const int width : {1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 80}) {
    for (const int run : {1, 2, 5, 30}) {
      base::Mask mask = MakeMask(0, 0, width, 40);
      int value = 0;
      for (uint8_t& pixel : mask.data) {
        if (random() % run == 0) value ^= 1;
        pixel = value;
      }
      const float end = width;
      model::Detection detection = MakeDetection({0, 0, end, 40});
      detection.mask = std::make_shared<PixelMask>(mask);
      const v1::DetectResult result =
          Convert({detection}, Frame(), v1::DetectParams::PNG_CROP);
      const server::GreyPng png =
          server::DecodeGreyPng(result.detections(0).png_crop());
      EXPECT_EQ(png.width, width);
      EXPECT_EQ(png.values,
                std::vector<int>(mask.data.begin(), mask.data.end()))
          << "width " << width << ", runs of " << run;
    }
  }
}

// The mask has more lines than one step encodes.
TEST(DetectionTest, LargeMasksComeBackWhole) {
  constexpr int kSide = 700;
  image::PictureFrame frame;
  frame.picture = {kSide, kSide};
  std::mt19937 random(1);
  base::Mask mask = MakeMask(0, 0, kSide, kSide);
  int value = 0;
  for (uint8_t& pixel : mask.data) {
    if (random() % 9 == 0) value ^= 1;
    pixel = value;
  }
  const std::vector<int> expected(mask.data.begin(), mask.data.end());
  model::Detection detection = MakeDetection({0, 0, kSide, kSide});
  detection.mask = std::make_shared<PixelMask>(mask);
  const v1::DetectResult rle =
      Convert({detection}, frame, v1::DetectParams::COCO_RLE);
  EXPECT_EQ(server::DecodeRle(rle.detections(0).rle().counts(), kSide, kSide),
            expected);
  const v1::DetectResult png =
      Convert({detection}, frame, v1::DetectParams::PNG_CROP);
  EXPECT_EQ(server::DecodeGreyPng(png.detections(0).png_crop()).values,
            expected);
}

model::DetectionOptions OptionsFor(const v1::DetectParams& params,
                                   bool model_has_masks) {
  repository::ModelDirectory model = ModelOf(Labels());
  model.config.detector.masks = model_has_masks;
  batching::BatchTask task;
  MakeHandler(params)->FillTask(model, &task);
  return std::get<model::DetectionOptions>(task.options);
}

TEST(DetectionOptionsTest, WhatIsUnsetIsLeftToTheModel) {
  const model::DetectionOptions options = OptionsFor({}, true);
  EXPECT_FALSE(options.score_threshold.has_value());
  EXPECT_FALSE(options.nms_iou_threshold.has_value());
  EXPECT_EQ(options.max_detections, 0);
  EXPECT_TRUE(options.classes.empty());
  EXPECT_FALSE(options.class_agnostic_nms);
  EXPECT_FALSE(options.masks);
}

TEST(DetectionOptionsTest, WhatIsSetIsHandedOn) {
  v1::DetectParams params;
  params.set_score_threshold(0);
  params.set_nms_iou_threshold(0.75f);
  params.set_max_detections(9);
  for (int id : {2, 0, 2}) params.add_class_filter(id);
  params.set_class_agnostic_nms(true);
  params.set_mask_encoding(v1::DetectParams::PNG_CROP);
  const model::DetectionOptions options = OptionsFor(params, true);
  EXPECT_EQ(options.score_threshold, 0);
  EXPECT_EQ(options.nms_iou_threshold, 0.75f);
  EXPECT_EQ(options.max_detections, 9);
  EXPECT_EQ(options.classes, (std::vector<int>{0, 2}));
  EXPECT_TRUE(options.class_agnostic_nms);
  EXPECT_TRUE(options.masks);
  EXPECT_FALSE(OptionsFor(params, false).masks);
}

TEST(DetectionTest, AModelWithoutMasksAnswersWithoutThem) {
  repository::ModelDirectory model = ModelOf(Labels());
  model.config.detector.masks = false;
  v1::DetectParams params;
  params.set_mask_encoding(v1::DetectParams::COCO_RLE);
  const v1::DetectResult result = AnswerOf<v1::DetectResult>(
      params, model, model::Detections{{MakeDetection({1, 2, 3, 4})}}, Frame());
  EXPECT_EQ(result.detections(0).mask_case(), v1::Detection::MASK_NOT_SET);
}

}  // namespace
}  // namespace sfmamba::prediction
