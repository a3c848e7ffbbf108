// Tests that the client reads a picture like the server, and that it says why
// it refuses a picture. tests/base/ tests the decoding.
#include "tests/server/picture.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/image_decoder.h"
#include "client/picture/picture_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/image/image.h"

namespace sfmamba::client {
namespace {

using ::testing::HasSubstr;

void ExpectDecodesAsTheServerDoes(const std::string& name,
                                  const std::string& bytes) {
  const absl::StatusOr<image::RgbImage> server = base::DecodeImage(
      bytes, image::ImageLimits(), /*apply_orientation=*/true, 0);
  ASSERT_TRUE(server.ok()) << name << ": " << server.status();
  const absl::StatusOr<Picture> client = ReadPicture(bytes);
  ASSERT_TRUE(client.ok()) << name << ": " << client.status();
  EXPECT_EQ(client->width, server->width) << name;
  EXPECT_EQ(client->height, server->height) << name;
  EXPECT_EQ(client->data, server->data) << name;
}

void ExpectRefused(const std::string& name, const std::string& bytes,
                   const std::string& message) {
  const absl::Status status = ReadPicture(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
  EXPECT_THAT(status.message(), HasSubstr(message)) << name;
}

TEST(ReadPictureTest, DecodesAllFormats) {
  const image::RgbImage image = server::Gradient(37, 23);
  ExpectDecodesAsTheServerDoes("JPEG", server::EncodeJpeg(image));
  ExpectDecodesAsTheServerDoes("PNG", server::EncodePng(image));
  ExpectDecodesAsTheServerDoes("lossy WebP", server::EncodeWebp(image, false));
  ExpectDecodesAsTheServerDoes("lossless WebP",
                               server::EncodeWebp(image, true));
}

TEST(ReadPictureTest, TurnsByExif) {
  const image::RgbImage image = server::Gradient(24, 16);
  for (int orientation = 0; orientation <= 9; ++orientation) {
    ExpectDecodesAsTheServerDoes(
        absl::StrCat("orientation ", orientation),
        server::WithExif(server::EncodeJpeg(image),
                         server::ExifOrientation(orientation, true)));
  }
  // Also checks that the picture is really rotated, and not only equal to the
  // picture that the server decodes.
  const absl::StatusOr<Picture> turned = ReadPicture(server::WithChunk(
      server::EncodePng(image),
      server::PngChunk("eXIf", server::ExifOrientation(6, true).substr(6))));
  ASSERT_TRUE(turned.ok());
  EXPECT_EQ(turned->width, 16);
  EXPECT_EQ(turned->height, 24);
  // The last column of the rotated picture was the first row.
  EXPECT_EQ(turned->data[3 * 15 + 0], image.data[0]);
  EXPECT_EQ(turned->data[3 * (16 + 15)], image.data[3]);
}

TEST(ReadPictureTest, SaysWhyAPictureIsRefused) {
  const std::string png = server::EncodePng(server::Gradient(60, 45));
  ExpectRefused("empty", "", "this is nothing, 0 bytes");
  ExpectRefused("GIF", "GIF89a", "this is a GIF");
  ExpectRefused("truncated", png.substr(0, 200), "PNG: ");
  std::string jpeg = server::EncodeJpeg(server::Gradient(16, 16));
  jpeg.replace(jpeg.find("\xFF\xC0") + 5, 4, "\x40\x01\x00\x10", 4);
  ExpectRefused("JPEG 16 x 16385", jpeg, "16 x 16385 pixels");
}

// The client does not limit the bytes of a picture. A server may be configured
// with a higher limit than its default, and the client does not know the limit.
TEST(ReadPictureTest, AnyNumberOfBytesIsRead) {
  const image::RgbImage image = server::Gradient(8, 8);
  const absl::StatusOr<Picture> picture = ReadPicture(
      absl::StrCat(server::EncodePng(image), std::string(33 << 20, '\0')));
  ASSERT_TRUE(picture.ok()) << picture.status();
  EXPECT_EQ(picture->data, image.data);
}

}  // namespace
}  // namespace sfmamba::client
