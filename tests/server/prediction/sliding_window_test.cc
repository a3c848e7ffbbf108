// Tests how Segment divides an image into windows before decoding it.

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "tests/server/prediction/encoded_answer.h"

namespace sfmamba::prediction {
namespace {

constexpr int kHeight = 48, kWidth = 96;

repository::ModelDirectory Segmenter() {
  repository::ModelDirectory model = ModelOf({"zero", "one"});
  model.config.task = model::VisionTask::kSegmentation;
  model.config.resize = model::Resize::kKeepRatio;
  model.config.short_side = kHeight;
  model.config.long_side = kWidth;
  return model;
}

// Returns an image with a model input of kHeight x kWidth pixels.
ImageFacts Image(batching::ImageType type = batching::ImageType::kUint8) {
  ImageFacts image;
  image.input = image.seen = {kHeight, kWidth};
  image.key = KeyOf(Segmenter().config, image.input, type);
  image.input_bytes = 100;
  return image;
}

absl::Status Divide(const v1::SlidingWindow& slide, int most,
                    ImageFacts* image) {
  v1::SegmentParams params;
  *params.mutable_slide() = slide;
  return MakeHandler(params)->Divide(Segmenter(), most, image);
}

TEST(SlidingWindowTest, IsTheShortSideAndMovesByTwoThirds) {
  ImageFacts image = Image();
  ASSERT_TRUE(Divide({}, 64, &image).ok());
  ASSERT_EQ(image.parts.size(), 3u);
  EXPECT_EQ(image.parts[1].region.height, 48);
  EXPECT_EQ(image.parts[1].region.width, 48);
  EXPECT_EQ(image.parts[1].region.left, 32);
  EXPECT_EQ(image.parts[2].region.left, 48);
}

TEST(SlidingWindowTest, EachOfItsNumbersCounts) {
  v1::SlidingWindow slide;
  slide.set_width(20);
  slide.set_height(1);  // The default stride is rounded up to one pixel.
  slide.set_stride_x(7);
  ImageFacts image = Image();
  ASSERT_TRUE(Divide(slide, 1000, &image).ok());
  ASSERT_EQ(image.parts.size(), 48u * 12u);
  EXPECT_EQ(image.parts[1].region.width, 20);
  EXPECT_EQ(image.parts[1].region.height, 1);
  EXPECT_EQ(image.parts[1].region.left, 7);
  EXPECT_EQ(image.parts[12].region.top, 1);
}

TEST(SlidingWindowTest, WindowsArePartsOfTheInputWhichStaysBesideThem) {
  v1::SlidingWindow slide;
  slide.set_stride_x(48);
  for (const auto type :
       {batching::ImageType::kUint8, batching::ImageType::kFloat32}) {
    const int64_t bytes =
        3 * 48 * 48 * (type == batching::ImageType::kUint8 ? 1 : 4);
    ImageFacts image = Image(type);
    ASSERT_TRUE(Divide(slide, 2, &image).ok()) << "as many as may be";
    ASSERT_EQ(image.parts.size(), 2u);
    EXPECT_EQ(image.parts[1].key, KeyOf(Segmenter().config, {48, 48}, type));
    EXPECT_EQ(image.parts[1].input_bytes, bytes);
    EXPECT_TRUE(image.parts_of_input);
    EXPECT_EQ(image.input_bytes, 100 + 2 * bytes);
  }
  ImageFacts image = Image();
  const absl::Status status = Divide(slide, 1, &image);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(image.parts.empty());
}

TEST(SlidingWindowTest, ItsNumbersAreWithinTheirRanges) {
  const auto field = [](auto change) {
    v1::SegmentParams params;
    change(*params.mutable_slide());
    return server::GetErrorDetail(MakeHandler(params)->CheckParams(Segmenter()))
        .field;
  };
  EXPECT_EQ(field([](auto& s) { s.set_width(1 << 14); }), "");
  EXPECT_EQ(field([](auto& s) { s.set_width((1 << 14) + 1); }),
            "params.slide.width");
  EXPECT_EQ(field([](auto& s) { s.set_height((1 << 14) + 1); }),
            "params.slide.height");
  EXPECT_EQ(field([](auto& s) { s.set_stride_x(48); }), "");
  EXPECT_EQ(field([](auto& s) { s.set_stride_x(49); }),
            "params.slide.stride_x");
  EXPECT_EQ(field([](auto& s) { s.set_stride_y(49); }),
            "params.slide.stride_y");
}

}  // namespace
}  // namespace sfmamba::prediction
