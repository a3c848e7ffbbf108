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

TEST(FromProtoTest, ASlidingWindowThatIsThereIsAskedFor) {
  v1::SegmentParams params;
  prediction::TaskParams result;
  ASSERT_TRUE(FromProto(params, &result).ok());
  EXPECT_FALSE(std::get<prediction::SegmentParams>(result).slide.has_value());
  params.mutable_slide()->set_height(3);
  params.mutable_slide()->set_stride_x(-4);
  ASSERT_TRUE(FromProto(params, &result).ok());
  const auto& slide = std::get<prediction::SegmentParams>(result).slide;
  ASSERT_TRUE(slide.has_value());
  EXPECT_EQ(slide->width, 0);
  EXPECT_EQ(slide->height, 3);
  EXPECT_EQ(slide->stride_x, -4);
  EXPECT_EQ(slide->stride_y, 0);
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

}  // namespace
}  // namespace sfmamba::rpc
