// Tests segmentation results as a caller of sfmamba.v1 receives them.

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/server/masks.h"
#include "tests/server/prediction/encoded_answer.h"

namespace sfmamba::prediction {
namespace {

std::vector<std::string> Labels(int classes) {
  std::vector<std::string> labels;
  for (int i = 0; i < classes; ++i) labels.push_back(absl::StrCat("label ", i));
  return labels;
}

// Returns a map of 3 x 2 pixels. Three pixels have class 1, two have class 0,
// and one has the last class.
model::Segmentation MakeMap(int classes) {
  model::Segmentation map;
  map.height = 2;
  map.width = 3;
  const uint16_t last = classes - 1;
  map.labels = {1, 1, last, 0, 1, 0};
  map.confidence = {10, 20, 30, 40, 50, 255};
  map.areas.resize(classes);
  for (const uint16_t label : map.labels) ++map.areas[label];
  return map;
}

v1::SegmentResult Convert(const v1::SegmentParams& params,
                          const model::Segmentation& map, int classes) {
  return AnswerOf<v1::SegmentResult>(params, ModelOf(Labels(classes)), map);
}

v1::SegmentResult Convert(const v1::SegmentParams& params, int classes = 5) {
  const v1::SegmentResult result = Convert(params, MakeMap(classes), classes);
  EXPECT_EQ(result.width(), 3);
  EXPECT_EQ(result.height(), 2);
  return result;
}

// Returns the options that the model receives for a picture of `side` x `side`
// pixels. The picture is resized to a model input of 64 x 64 pixels.
model::SegmentationOptions AskedOf(const v1::SegmentParams& params, int side,
                                   const repository::ModelDirectory& model) {
  batching::BatchTask task;
  task.image.height = task.image.width = 64;
  task.image.original_height = task.image.original_width = side;
  MakeHandler(params)->FillTask(model, &task);
  return std::get<model::SegmentationOptions>(task.options);
}

// The time of a batch must not depend on the size of the original pictures.
TEST(SegmentationTest, MapsOfLargePicturesAreComputedAfterTheBatch) {
  repository::ModelDirectory model = ModelOf(Labels(5));
  EXPECT_FALSE(AskedOf({}, 64, model).logits);
  EXPECT_TRUE(AskedOf({}, 7071, model).logits);
  v1::SegmentParams params;
  params.set_output_size(v1::SegmentParams::MODEL);
  EXPECT_FALSE(AskedOf(params, 7071, model).logits);
  model.on_gpus = true;
  EXPECT_FALSE(AskedOf({}, 7071, model).logits) << "a GPU takes milliseconds";
}

TEST(SegmentationTest, TheLogitsOfALargePictureCountAsMemory) {
  const repository::ModelDirectory model = ModelOf(Labels(5));
  ImageFacts image;
  image.input = {64, 64};
  image.seen = {1000, 1000};
  v1::SegmentParams params;
  EXPECT_EQ(MakeHandler(params)->ResultBytes(model, image),
            2'000'000 + 16 * 16 * 5 * sizeof(float));
  params.set_include_confidence_map(true);
  EXPECT_EQ(MakeHandler(params)->ResultBytes(model, image),
            3'000'000 + 16 * 16 * 5 * sizeof(float));
}

TEST(SegmentationTest, AMapOfLogitsIsEncodedAsAny) {
  model::Segmentation logits;
  logits.height = 1;
  logits.width = 2;
  logits.logits = {0, 5, 0, 0, 0, 0, 0, 0, 0, 5};
  image::PictureFrame frame;
  frame.input_size = {1, 2};
  frame.seen = {2, 4};
  v1::SegmentParams params;
  params.set_encoding(v1::SegmentParams::RAW_INDEX);
  params.set_include_class_areas(true);
  params.set_include_confidence_map(true);
  const auto result =
      AnswerOf<v1::SegmentResult>(params, ModelOf(Labels(5)), logits, frame);
  EXPECT_EQ(result.height(), 2);
  EXPECT_EQ(result.width(), 4);
  EXPECT_EQ(result.raw().data(), std::string("\1\1\4\4\1\1\4\4"));
  ASSERT_EQ(result.areas_size(), 2);
  EXPECT_EQ(result.areas(0).pixel_count(), 4);
  EXPECT_EQ(server::DecodeGreyPng(result.confidence_png()).values[0], 248);
}

TEST(SegmentationTest, ByDefaultAPngOfIndices) {
  const v1::SegmentResult result = Convert({});
  const server::GreyPng png = server::DecodeGreyPng(result.png_index());
  EXPECT_EQ(png.bit_depth, 8);
  EXPECT_EQ(png.width, 3);
  EXPECT_EQ(png.values, (std::vector<int>{1, 1, 4, 0, 1, 0}));
  EXPECT_EQ(result.areas_size(), 0);
  EXPECT_EQ(result.confidence_png(), "");
}

TEST(SegmentationTest, ManyClassesTakeSixteenBits) {
  EXPECT_EQ(server::DecodeGreyPng(Convert({}, 255).png_index()).bit_depth, 8);
  const server::GreyPng png =
      server::DecodeGreyPng(Convert({}, 256).png_index());
  EXPECT_EQ(png.bit_depth, 16);
  EXPECT_EQ(png.values, (std::vector<int>{1, 1, 255, 0, 1, 0}));
  EXPECT_EQ(server::DecodeGreyPng(Convert({}, 60000).png_index()).values[2],
            59999);
}

TEST(SegmentationTest, FilteredClassesAreIgnored) {
  v1::SegmentParams params;
  params.add_class_filter(0);
  params.add_class_filter(3);
  params.set_include_class_areas(true);
  const v1::SegmentResult few = Convert(params);
  EXPECT_EQ(server::DecodeGreyPng(few.png_index()).values,
            (std::vector<int>{255, 255, 255, 0, 255, 0}));
  ASSERT_EQ(few.areas_size(), 1);
  EXPECT_EQ(few.areas(0).class_id(), 0);
  EXPECT_FLOAT_EQ(few.areas(0).fraction(), 2 / 6.f);
  EXPECT_EQ(server::DecodeGreyPng(Convert(params, 300).png_index()).values,
            (std::vector<int>{65535, 65535, 65535, 0, 65535, 0}));
}

TEST(SegmentationTest, AreasAreLargestFirstThenById) {
  v1::SegmentParams params;
  params.set_include_class_areas(true);
  model::Segmentation map = MakeMap(5);
  map.labels = {1, 1, 4, 0, 4, 0};
  map.areas = {2, 2, 0, 0, 2};
  const v1::SegmentResult result = Convert(params, map, 5);
  ASSERT_EQ(result.areas_size(), 3);
  EXPECT_EQ(result.areas(0).class_id(), 0);
  EXPECT_EQ(result.areas(1).class_id(), 1);
  EXPECT_EQ(result.areas(2).class_id(), 4);
  const v1::SegmentResult other = Convert(params);
  EXPECT_EQ(other.areas(0).class_id(), 1);
  EXPECT_EQ(other.areas(0).label(), "label 1");
  EXPECT_EQ(other.areas(0).pixel_count(), 3);
  EXPECT_FLOAT_EQ(other.areas(0).fraction(), 0.5f);
  EXPECT_EQ(other.areas(2).class_id(), 4);
}

TEST(SegmentationTest, RunLengthsOfTheClassesThatOccur) {
  v1::SegmentParams params;
  params.set_encoding(v1::SegmentParams::RLE_PER_CLASS);
  const v1::SegmentResult result = Convert(params);
  ASSERT_EQ(result.rle().classes_size(), 3);
  const std::vector<std::vector<int>> expected = {
      {0, 0, 0, 1, 0, 1}, {1, 1, 0, 0, 1, 0}, {0, 0, 1, 0, 0, 0}};
  for (int i = 0; i < 3; ++i) {
    const v1::ClassRle& rle = result.rle().classes(i);
    EXPECT_EQ(rle.class_id(), i == 2 ? 4 : i);
    EXPECT_EQ(rle.label(), absl::StrCat("label ", rle.class_id()));
    EXPECT_EQ(rle.rle().height(), 2);
    EXPECT_EQ(rle.rle().width(), 3);
    EXPECT_EQ(server::DecodeRle(rle.rle().counts(), 2, 3), expected[i]);
  }
  params.add_class_filter(4);
  ASSERT_EQ(Convert(params).rle().classes_size(), 1);
  EXPECT_EQ(Convert(params).rle().classes(0).class_id(), 4);
}

TEST(SegmentationTest, RawIndicesOfOneOrTwoBytes) {
  v1::SegmentParams params;
  params.set_encoding(v1::SegmentParams::RAW_INDEX);
  const v1::SegmentResult one = Convert(params);
  EXPECT_EQ(one.raw().bytes_per_pixel(), 1);
  EXPECT_EQ(one.raw().width(), 3);
  EXPECT_EQ(one.raw().height(), 2);
  EXPECT_EQ(one.raw().data(), std::string("\1\1\4\0\1\0", 6));
  params.add_class_filter(299);
  const v1::SegmentResult two = Convert(params, 300);
  EXPECT_EQ(two.raw().bytes_per_pixel(), 2);
  EXPECT_EQ(
      two.raw().data(),
      std::string("\xff\xff\xff\xff\x2b\x01\xff\xff\xff\xff\xff\xff", 12));
}

TEST(SegmentationTest, ConfidenceIsAPngOfItsOwn) {
  v1::SegmentParams params;
  params.set_include_confidence_map(true);
  const server::GreyPng png =
      server::DecodeGreyPng(Convert(params).confidence_png());
  EXPECT_EQ(png.bit_depth, 8);
  EXPECT_EQ(png.values, (std::vector<int>{10, 20, 30, 40, 50, 255}));
}

TEST(SegmentationTest, TheModelIsAskedForWhatTheParametersSay) {
  const auto asked = [](const v1::SegmentParams& params) {
    batching::BatchTask task;
    MakeHandler(params)->FillTask(ModelOf(Labels(5)), &task);
    return model::OptionsOf<model::SegmentationOptions>(task.options);
  };
  v1::SegmentParams params;
  EXPECT_TRUE(asked(params).original_size);
  EXPECT_FALSE(asked(params).confidence);
  EXPECT_FALSE(asked(params).logits);
  params.set_output_size(v1::SegmentParams::MODEL);
  params.set_include_confidence_map(true);
  params.mutable_slide();
  EXPECT_FALSE(asked(params).original_size);
  EXPECT_TRUE(asked(params).confidence);
  EXPECT_TRUE(asked(params).logits);
}

TEST(SegmentationTest, AWindowDoesNotHideAnotherWrongParameter) {
  repository::ModelDirectory model = ModelOf(Labels(5));
  model.config.short_side = 48;
  v1::SegmentParams params;
  params.mutable_slide();
  EXPECT_EQ(MakeHandler(params)->CheckParams(model), absl::OkStatus());
  params.add_class_filter(5);
  EXPECT_TRUE(absl::IsInvalidArgument(MakeHandler(params)->CheckParams(model)));
}

TEST(SegmentationTest, ConfidenceAndWindowsTakeMemoryAndTimeBesideTheMap) {
  repository::ModelDirectory model = ModelOf(Labels(5));
  model.config.short_side = 48;
  ImageFacts image;
  image.seen = image.input = {100, 200};
  v1::SegmentParams params;
  const auto bytes = [&] {
    return MakeHandler(params)->ResultBytes(model, image);
  };
  const auto time = [&] {
    return MakeHandler(params)->LongestAnswer(model, image);
  };
  EXPECT_EQ(bytes(), 2 * 100 * 200);
  const absl::Duration map = time();
  EXPECT_GT(map, absl::ZeroDuration());
  params.set_include_confidence_map(true);
  EXPECT_EQ(bytes(), 3 * 100 * 200);
  EXPECT_EQ(time(), 2 * map);
  params.mutable_slide();
  EXPECT_GT(bytes(), 3 * 100 * 200);
  EXPECT_GT(time(), 2 * map);
}

int PiecesOf(const v1::SegmentParams& params,
             const repository::ModelDirectory& model,
             const model::Segmentation& map) {
  const auto handler = MakeHandler(params);
  const auto encoder = handler->MakeEncoder(model, map, {});
  int pieces = 0;
  for (; !encoder->done(); ++pieces) {
    EXPECT_TRUE(encoder->EncodeNext().ok());
  }
  return pieces;
}

TEST(SegmentationPiecesTest, RunLengthsCountOnceTheyAreEncoded) {
  v1::SegmentParams params;
  params.set_encoding(v1::SegmentParams::RLE_PER_CLASS);
  const auto handler = MakeHandler(params);
  const repository::ModelDirectory model = ModelOf(Labels(5));
  const auto encoder = handler->MakeEncoder(model, MakeMap(5), {});
  ASSERT_TRUE(encoder->EncodeNext().ok());
  EXPECT_GT(encoder->bytes(), 0);
}

TEST(SegmentationPiecesTest, ATallMapsColumnsShareAPiece) {
  model::Segmentation map;
  map.height = 30'000;
  map.width = 70;
  map.labels.resize(map.height * map.width);
  map.areas = {map.height * map.width};
  v1::SegmentParams params;
  params.set_encoding(v1::SegmentParams::RLE_PER_CLASS);
  const int pieces = PiecesOf(params, ModelOf(Labels(1)), map);
  EXPECT_GE(pieces, 2);
  EXPECT_LE(pieces, 5);
}

// The map takes several steps, and each step is a small part of the work.
TEST(SegmentationPiecesTest, ALargeMapIsEncodedInPieces) {
  model::Segmentation map;
  map.height = 2000;
  map.width = 2500;
  map.areas.resize(5);
  for (int y = 0; y < map.height; ++y) {
    for (int x = 0; x < map.width; ++x) {
      map.labels.push_back(x / 700 + (y > 1234));
      map.confidence.push_back(x / 10);
      ++map.areas[map.labels.back()];
    }
  }
  const repository::ModelDirectory model = ModelOf(Labels(5));
  for (const auto encoding :
       {v1::SegmentParams::PNG_INDEX, v1::SegmentParams::RLE_PER_CLASS,
        v1::SegmentParams::RAW_INDEX}) {
    v1::SegmentParams params;
    params.set_encoding(encoding);
    const int without_confidence = PiecesOf(params, model, map);
    EXPECT_GE(without_confidence, 4);
    EXPECT_LE(without_confidence, 30);
    params.set_include_confidence_map(true);
    EXPECT_GE(PiecesOf(params, model, map), without_confidence + 10);
    EXPECT_LE(PiecesOf(params, model, map), without_confidence + 30);
    const auto handler = MakeHandler(params);
    const auto encoder = handler->MakeEncoder(model, map, {});
    while (!encoder->done()) {
      EXPECT_LE(encoder->NextCost(), absl::Milliseconds(10));
      const int64_t before = encoder->bytes();
      ASSERT_TRUE(encoder->EncodeNext().ok());
      EXPECT_GE(encoder->bytes(), before);
    }
    EXPECT_GT(encoder->bytes(), 0);
    const auto answer = std::get<v1::SegmentResult>(encoder->Take().result);
    EXPECT_FALSE(answer.confidence_png().empty());
    if (encoding == v1::SegmentParams::PNG_INDEX) {
      const server::GreyPng png = server::DecodeGreyPng(answer.png_index());
      EXPECT_EQ(png.values,
                std::vector<int>(map.labels.begin(), map.labels.end()));
    } else if (encoding == v1::SegmentParams::RAW_INDEX) {
      EXPECT_EQ(answer.raw().data(),
                std::string(map.labels.begin(), map.labels.end()));
    } else {
      ASSERT_EQ(answer.rle().classes_size(), 5);
      for (const v1::ClassRle& one : answer.rle().classes()) {
        const std::vector<int> mask =
            server::DecodeRle(one.rle().counts(), map.height, map.width);
        EXPECT_EQ(std::count(mask.begin(), mask.end(), 1),
                  map.areas[one.class_id()]);
      }
    }
  }
}

}  // namespace
}  // namespace sfmamba::prediction
