// Tests what the server adds to base/'s decoders. tests/base/ tests the
// decoders.
#include "server/image/image.h"

#include <string>

#include "base/image_decoder.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "tests/server/picture.h"

namespace sfmamba::image {
namespace {

// Returns the reason that a client gets for a decoder's error.
std::string ReasonOf(const absl::Status& error) {
  const absl::Status status = DecodeError(error);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return server::GetErrorDetail(status).reason;
}

TEST(DecodeErrorTest, EachErrorHasItsReason) {
  const std::string jpeg = server::EncodeJpeg(server::Gradient(60, 45));
  const std::string truncated = jpeg.substr(0, jpeg.size() / 2);
  ImageLimits small;
  small.max_pixels = 60 * 45 - 1;
  const struct {
    std::string bytes;
    ImageLimits limits;
    std::string reason;
  } cases[] = {
      {"a picture of a chair", ImageLimits(), "IMAGE_FORMAT_UNSUPPORTED"},
      {jpeg.substr(0, 20), ImageLimits(), "IMAGE_DECODE_FAILED"},
      {jpeg, small, "IMAGE_TOO_LARGE"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(ReasonOf(base::ReadImageHeader(c.bytes, c.limits).status()),
              c.reason);
    EXPECT_EQ(ReasonOf(base::DecodeImage(c.bytes, c.limits, true, 0).status()),
              c.reason);
  }
  EXPECT_EQ(
      ReasonOf(base::DecodeImage(truncated, ImageLimits(), true, 0).status()),
      "IMAGE_DECODE_FAILED");
}

TEST(DecodeErrorTest, AnExpiredWatchIsATimeout) {
  absl::Duration now;
  const DecodeWatch watch(absl::Seconds(1), [&now] { return now; });
  now = absl::Seconds(2);
  EXPECT_EQ(
      ReasonOf(base::DecodeImage(server::EncodePng(server::Gradient(8, 8)),
                                 ImageLimits(), true, 0, watch)
                   .status()),
      "IMAGE_DECODE_TIMEOUT");
  EXPECT_EQ(ReasonOf(watch.status()), "IMAGE_DECODE_TIMEOUT");
}

TEST(DecodeErrorTest, WhatIsNotWantedStaysCancelled) {
  const DecodeWatch watch(absl::Seconds(1), base::ThreadCpuTime,
                          [] { return false; });
  ASSERT_TRUE(watch.Expired());
  EXPECT_EQ(DecodeError(watch.status()), watch.status());
}

TEST(OrientedSizeTest, SwapsTheSidesOfAQuarterTurn) {
  ImageHeader header;
  header.width = 4;
  header.height = 3;
  header.orientation = 6;
  EXPECT_EQ(OrientedSize(header, true).width, 3);
  EXPECT_EQ(OrientedSize(header, false).width, 4);
  header.orientation = 3;
  EXPECT_EQ(OrientedSize(header, true).width, 4);
}

}  // namespace
}  // namespace sfmamba::image
