// What the server adds to base/'s decoders; what they do is in tests/base/.
#include "server/image/image.h"

#include <string>

#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "tests/server/picture.h"

namespace sfmamba::image {
namespace {

std::string ReasonOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return server::GetErrorDetail(status).reason;
}

TEST(DecodeImageTest, EachErrorHasItsReason) {
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
    EXPECT_EQ(ReasonOf(image::ReadImageHeader(c.bytes, c.limits).status()),
              c.reason);
    EXPECT_EQ(ReasonOf(image::DecodeImage(c.bytes, c.limits, true, 0).status()),
              c.reason);
  }
  EXPECT_EQ(
      ReasonOf(image::DecodeImage(truncated, ImageLimits(), true, 0).status()),
      "IMAGE_DECODE_FAILED");
}

TEST(DecodeImageTest, AnExpiredWatchIsATimeout) {
  absl::Duration now;
  const DecodeWatch watch(absl::Seconds(1), [&now] { return now; });
  now = absl::Seconds(2);
  const absl::Status status =
      image::DecodeImage(server::EncodePng(server::Gradient(8, 8)),
                         ImageLimits(), true, 0, watch)
          .status();
  EXPECT_EQ(ReasonOf(status), "IMAGE_DECODE_TIMEOUT");
  EXPECT_EQ(status, DecodedTooSlowly(watch));
}

TEST(DecodeImageTest, GoodPicturesAreDecoded) {
  const RgbImage picture = server::Gradient(37, 21);
  const std::string png = server::EncodePng(picture);
  const absl::StatusOr<RgbImage> image =
      image::DecodeImage(png, ImageLimits(), true, 0);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->data, picture.data);
  const absl::StatusOr<ImageHeader> header =
      image::ReadImageHeader(png, ImageLimits());
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->format, ImageFormat::kPng);
  EXPECT_EQ(header->width, 37);
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
