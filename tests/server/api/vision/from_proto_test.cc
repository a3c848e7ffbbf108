#include "server/api/vision/from_proto.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "server/shares/priority.h"

namespace sfmamba::api {
namespace {

using server::Priority;

Priority PriorityOf(v1::RequestOptions::Priority priority) {
  v1::RequestOptions options;
  options.set_priority(priority);
  prediction::RequestOptions result;
  EXPECT_TRUE(FromProto(options, &result).ok());
  return result.priority;
}

TEST(FromProtoTest, EachPriorityIsTakenAndUnsetIsNormal) {
  EXPECT_EQ(PriorityOf(v1::RequestOptions::HIGH), Priority::kHigh);
  EXPECT_EQ(PriorityOf(v1::RequestOptions::NORMAL), Priority::kNormal);
  EXPECT_EQ(PriorityOf(v1::RequestOptions::LOW), Priority::kLow);
  EXPECT_EQ(PriorityOf(v1::RequestOptions::PRIORITY_UNSPECIFIED),
            Priority::kNormal);
}

TEST(FromProtoTest, AnUnknownPriorityIsRefused) {
  v1::RequestOptions options;
  options.set_priority(static_cast<v1::RequestOptions::Priority>(99));
  prediction::RequestOptions result;
  const absl::Status status = FromProto(options, &result);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server::GetErrorDetail(status).field, "options.priority");
}

TEST(FromProtoTest, AnUnsetSideOfACropIsThePictures) {
  v1::Image image;
  image.set_encoded("x");
  image.mutable_crop()->set_x_max(0.5f);
  absl::StatusOr<image::ImageSource> source = FromProto(image);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(source->crop->x_min, 0);
  EXPECT_EQ(source->crop->x_max, 0.5f);
  EXPECT_EQ(source->crop->y_max, 1);
  // FromProto() accepts a crop whose y_max is 0. A later check refuses it.
  image.mutable_crop()->set_y_max(0);
  source = FromProto(image);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(source->crop->y_max, 0);
}

TEST(FromProtoTest, OptionsAreTaken) {
  v1::RequestOptions options;
  options.set_include_timing(true);
  options.set_validate_only(true);
  options.set_resize(v1::RequestOptions::LETTERBOX);
  prediction::RequestOptions result;
  ASSERT_TRUE(FromProto(options, &result).ok());
  EXPECT_TRUE(result.include_timing);
  EXPECT_TRUE(result.validate_only);
  EXPECT_FALSE(result.allow_partial_results);
  EXPECT_EQ(result.resize, image::ResizeMode::kLetterbox);
  options.Clear();
  options.set_allow_partial_results(true);
  ASSERT_TRUE(FromProto(options, &result).ok());
  EXPECT_FALSE(result.include_timing);
  EXPECT_FALSE(result.validate_only);
  EXPECT_TRUE(result.allow_partial_results);
  EXPECT_EQ(result.resize, std::nullopt);
}

TEST(FromProtoTest, AWaitIsADurationOfProtobufThatIsNotNegative) {
  // The longest duration in seconds, as duration.proto says.
  constexpr int64_t kMost = 315'576'000'000;
  const auto read = [](int64_t seconds, int nanos) {
    v1::RequestOptions options;
    options.mutable_max_queue_wait()->set_seconds(seconds);
    options.mutable_max_queue_wait()->set_nanos(nanos);
    prediction::RequestOptions result;
    const absl::Status status = FromProto(options, &result);
    const std::string field = server::GetErrorDetail(status).field;
    EXPECT_EQ(field, status.ok() ? "" : "options.max_queue_wait");
    return status.ok() ? result.max_queue_wait : -absl::InfiniteDuration();
  };
  EXPECT_EQ(read(0, 0), absl::ZeroDuration());
  EXPECT_EQ(read(1, 500'000'000), absl::Milliseconds(1500));
  EXPECT_EQ(read(kMost, 999'999'999),
            absl::Seconds(kMost) + absl::Nanoseconds(999'999'999));
  for (const auto& [seconds, nanos] :
       {std::pair{int64_t{-1}, 0}, std::pair{int64_t{0}, -1},
        std::pair{kMost + 1, 0}, std::pair{int64_t{0}, 1'000'000'000}}) {
    EXPECT_EQ(read(seconds, nanos), -absl::InfiniteDuration())
        << seconds << " " << nanos;
  }
}

TEST(FromProtoTest, AnOrientationIsAppliedUnlessItIsToBeIgnored) {
  v1::Image image;
  image.set_encoded("x");
  EXPECT_TRUE(FromProto(image)->apply_orientation);
  image.set_orientation(v1::Image::IGNORE);
  EXPECT_FALSE(FromProto(image)->apply_orientation);
  image.set_orientation(static_cast<v1::Image::Orientation>(99));
  EXPECT_EQ(server::GetErrorDetail(FromProto(image).status()).field,
            ".orientation");
}

TEST(FromProtoTest, PixelsAndTensorsKeepTheirShape) {
  v1::Image image;
  v1::PixelBuffer* pixels = image.mutable_pixels();
  pixels->set_width(3);
  pixels->set_height(2);
  pixels->set_row_stride_bytes(10);
  pixels->set_format(v1::PixelBuffer::BGR8);
  pixels->set_data("bytes");
  absl::StatusOr<image::ImageSource> source = FromProto(image);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(source->pixels()->width, 3);
  EXPECT_EQ(source->pixels()->height, 2);
  EXPECT_EQ(source->pixels()->row_stride_bytes, 10);
  EXPECT_EQ(source->pixels()->format, image::PixelBuffer::Format::kBgr8);
  EXPECT_EQ(source->pixels()->data, "bytes");
  v1::Tensor* tensor = image.mutable_tensor();
  tensor->add_shape(7);
  tensor->set_data_type(v1::Tensor::BF16);
  tensor->set_data("values");
  source = FromProto(image);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(source->tensor()->shape, absl::Span<const int64_t>({7}));
  EXPECT_EQ(source->tensor()->type, image::InputTensor::Type::kBfloat16);
  EXPECT_EQ(source->tensor()->data, "values");
}

TEST(FromProtoTest, PixelsAndTensorsMustSayWhatTheyAre) {
  v1::Image image;
  image.mutable_pixels()->set_width(1);
  EXPECT_EQ(server::GetErrorDetail(FromProto(image).status()).field,
            ".pixels.format");
  image.mutable_pixels()->set_format(v1::PixelBuffer::GRAY8);
  EXPECT_TRUE(FromProto(image).ok());
  image.mutable_tensor()->add_shape(1);
  EXPECT_EQ(server::GetErrorDetail(FromProto(image).status()).field,
            ".tensor.data_type");
  image.mutable_tensor()->set_data_type(v1::Tensor::FP16);
  EXPECT_TRUE(FromProto(image).ok());
}

TEST(FromProtoTest, AnUnknownEnumeratorOfTheParametersIsRefused) {
  v1::DetectRequest request;
  EXPECT_TRUE(FromProto(request).malformed.ok());
  request.mutable_params()->set_mask_encoding(v1::DetectParams::COCO_RLE);
  request.mutable_params()->mutable_tiles()->set_match(v1::Tiles::IOS);
  EXPECT_TRUE(FromProto(request).malformed.ok());
  request.mutable_params()->mutable_tiles()->set_match(
      static_cast<v1::Tiles::Match>(99));
  const absl::Status status = FromProto(request).malformed;
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "got 99, expected a known value");
  EXPECT_EQ(server::GetErrorDetail(status).field, "params.tiles.match");
}

}  // namespace
}  // namespace sfmamba::api
