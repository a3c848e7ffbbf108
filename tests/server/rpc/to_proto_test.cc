// Every field of an answer is in its message.
#include "server/rpc/to_proto.h"

#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rpc {
namespace {

template <typename Message>
void ExpectIs(const Message& message, const std::string& text) {
  Message expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &expected));
  EXPECT_EQ(message.DebugString(), expected.DebugString());
}

TEST(ToProtoTest, ATimingIsWhole) {
  prediction::Timing timing;
  timing.decode = absl::Seconds(1);
  timing.preprocess = absl::Seconds(2);
  timing.batch.queue = absl::Seconds(3);
  timing.batch.inference = absl::Seconds(4);
  timing.postprocess = absl::Seconds(5);
  timing.total = absl::Seconds(6);
  timing.batch.batch_size = 7;
  timing.batch.padded_batch_size = 8;
  timing.batch.fold_factor = 9;
  timing.batch.size_class = "10x11";
  timing.device = "cpu";
  v1::Timing message;
  ToProto(timing, &message);
  ExpectIs(message, R"(
    decode { seconds: 1 }
    preprocess { seconds: 2 }
    queue { seconds: 3 }
    inference { seconds: 4 }
    postprocess { seconds: 5 }
    total { seconds: 6 }
    batch_size: 7
    padded_batch_size: 8
    fold_factor: 9
    bucket: "10x11"
    device: "cpu")");
}

TEST(ToProtoTest, AClassificationIsWhole) {
  prediction::ClassificationAnswer answer;
  answer.categories = {{3, "cat", 0.5f}, {1, "dog", 0.25f}};
  answer.embedding = {1, 2};
  v1::ClassifyResult message;
  ToProto(std::move(answer), &message);
  ExpectIs(message, R"(
    categories { class_id: 3 label: "cat" score: 0.5 }
    categories { class_id: 1 label: "dog" score: 0.25 }
    embedding: [ 1, 2 ])");
}

TEST(ToProtoTest, ADetectionIsWholeWithEachKindOfMask) {
  prediction::DetectionAnswer answer;
  answer.picture = {/*height=*/20, /*width=*/30};
  answer.objects.resize(3);
  answer.objects[0].box = {1, 2, 3, 4};
  answer.objects[0].class_id = 5;
  answer.objects[0].label = "cup";
  answer.objects[0].score = 0.5f;
  answer.objects[1].mask = prediction::CocoRle{20, 30, "runs"};
  answer.objects[2].mask = prediction::PngCrop{"png"};
  v1::DetectResult message;
  ToProto(std::move(answer), &message);
  ExpectIs(message, R"(
    detections {
      box { x_min: 1 y_min: 2 x_max: 3 y_max: 4 }
      class_id: 5
      label: "cup"
      score: 0.5
    }
    detections { box {} rle { height: 20 width: 30 counts: "runs" } }
    detections { box {} png_crop: "png" }
    image_width: 30
    image_height: 20)");
}

TEST(ToProtoTest, ACropIsAnAnswerOrItsError) {
  prediction::DetectionAnswer answer;
  answer.objects.resize(3);
  answer.objects[0].crop.emplace().answer.categories = {{3, "cat", 0.5f}};
  answer.objects[1].crop.emplace().error = absl::DeadlineExceededError("late");
  v1::DetectResult message;
  ToProto(std::move(answer), &message);
  EXPECT_EQ(message.detections(0).crop().categories(0).label(), "cat");
  EXPECT_FALSE(message.detections(0).crop().has_error());
  EXPECT_EQ(message.detections(1).crop().error().code(), 4);
  EXPECT_FALSE(message.detections(2).has_crop());
}

TEST(ToProtoTest, AHeatMapIsWhole) {
  prediction::ClassificationAnswer answer;
  answer.heat_map = {/*class_id=*/3, /*width=*/2, /*height=*/1, {1, 2}};
  answer.heat_map->png = "png";
  answer.heat_map->low = 4;
  answer.heat_map->high = 5;
  v1::ClassifyResult message;
  ToProto(std::move(answer), &message);
  ExpectIs(message, R"(
    heat_map {
      class_id: 3 width: 2 height: 1 values: [ 1, 2 ] png: "png" low: 4 high: 5
    })");
}

TEST(ToProtoTest, ASegmentationIsWholeWithEachKindOfMap) {
  const auto make = [](auto map) {
    prediction::SegmentationAnswer answer;
    answer.height = 20;
    answer.width = 30;
    answer.map = std::move(map);
    answer.areas = {{3, "sky", 150, 0.25f}};
    answer.confidence_png = "confidence";
    v1::SegmentResult message;
    ToProto(std::move(answer), &message);
    return message;
  };
  const std::string rest = R"(
    height: 20
    width: 30
    areas { class_id: 3 label: "sky" pixel_count: 150 fraction: 0.25 }
    confidence_png: "confidence" )";
  ExpectIs(make(prediction::IndexPng{"png"}), rest + R"(png_index: "png")");
  ExpectIs(make(prediction::RawIndexMap{2, "raw"}), rest + R"(
    raw { height: 20 width: 30 bytes_per_pixel: 2 data: "raw" })");
  ExpectIs(
      make(std::vector<prediction::ClassRle>{{3, "sky", {20, 30, "runs"}}}),
      rest + R"(
    rle {
      classes {
        class_id: 3
        label: "sky"
        rle { height: 20 width: 30 counts: "runs" }
      }
    })");
}

}  // namespace
}  // namespace sfmamba::rpc
