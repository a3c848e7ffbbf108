#include "server/rpc/wire/from_proto.h"

#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "server/shares/priority.h"

namespace sfmamba::rpc {
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
  // Zero is a value, which later checks refuse.
  image.mutable_crop()->set_y_max(0);
  source = FromProto(image);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(source->crop->y_max, 0);
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
}  // namespace sfmamba::rpc
