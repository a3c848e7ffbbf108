// Pictures in and out: whatever the server decodes, the client decodes to the
// same pixels; what is broken is refused with a reason.
#include "tests/server/picture.h"

#include <cstdint>
#include <cstdio>  // Before jpeglib.h.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/picture/picture_reader.h"
#include "client/picture/png_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jpeglib.h"
#include "server/image/image.h"

namespace sfmamba::client {
namespace {

using ::testing::HasSubstr;

void ExpectDecodesAsTheServerDoes(const std::string& name,
                                  const std::string& bytes) {
  const absl::StatusOr<image::RgbImage> server = image::DecodeImage(
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

std::string Ramp(int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes.push_back(i * 37 + i / 7);
  return bytes;
}

std::string Webp(const std::string& chunks) {
  std::string riff = "RIFF";
  for (int shift : {0, 8, 16, 24}) riff += (chunks.size() + 4) >> shift;
  return riff + "WEBP" + chunks;
}

TEST(ReadPictureTest, DecodesAllFormats) {
  const image::RgbImage image = server::Gradient(37, 23);
  ExpectDecodesAsTheServerDoes("JPEG", server::EncodeJpeg(image));
  ExpectDecodesAsTheServerDoes("progressive JPEG",
                               server::EncodeJpeg(37, 23, 3, image.data.data(),
                                                  [](jpeg_compress_struct& c) {
                                                    jpeg_simple_progression(&c);
                                                  }));
  ExpectDecodesAsTheServerDoes("PNG", server::EncodePng(image));
  ExpectDecodesAsTheServerDoes("lossy WebP", server::EncodeWebp(image, false));
  ExpectDecodesAsTheServerDoes("lossless WebP",
                               server::EncodeWebp(image, true));
}

TEST(ReadPictureTest, DecodesAllKindsOfPixels) {
  const std::string ramp = Ramp(8 * 37 * 23);
  const uint8_t* data = reinterpret_cast<const uint8_t*>(ramp.data());
  ExpectDecodesAsTheServerDoes("grey JPEG",
                               server::EncodeJpeg(37, 23, 1, data));
  ExpectDecodesAsTheServerDoes("CMYK JPEG",
                               server::EncodeJpeg(37, 23, 4, data));
  constexpr int kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgba = 6;
  for (const bool interlaced : {false, true}) {
    for (const auto& [type, depth] :
         std::vector<std::pair<int, int>>{{kGrey, 1},
                                          {kGrey, 8},
                                          {kGrey, 16},
                                          {kRgb, 8},
                                          {kRgb, 16},
                                          {kPalette, 2},
                                          {kGreyAlpha, 8},
                                          {kRgba, 8},
                                          {kRgba, 16}}) {
      ExpectDecodesAsTheServerDoes(
          absl::StrCat("PNG of type ", type, ", ", depth, " bits"),
          server::EncodePng(37, 23, {type, depth, interlaced}, ramp));
    }
  }
}

TEST(ReadPictureTest, TurnsByExif) {
  const image::RgbImage image = server::Gradient(24, 16);
  const std::string png = server::EncodePng(image);
  const std::string webp = server::EncodeWebp(image, true);
  for (int orientation = 0; orientation <= 9; ++orientation) {
    for (const bool little_endian : {false, true}) {
      const std::string exif =
          server::ExifOrientation(orientation, little_endian);
      const std::string tiff = exif.substr(6);  // Of 26 bytes.
      const std::string name = absl::StrCat("orientation ", orientation);
      ExpectDecodesAsTheServerDoes(
          name, server::WithExif(server::EncodeJpeg(image), exif));
      ExpectDecodesAsTheServerDoes(
          name, server::WithChunk(png, server::PngChunk("eXIf", tiff)));
      ExpectDecodesAsTheServerDoes(
          name, Webp(absl::StrCat(webp.substr(12), "EXIF\x1A",
                                  std::string(3, '\0'), tiff)));
    }
  }
  // Not only the same as the server, but upright.
  const absl::StatusOr<Picture> turned = ReadPicture(server::WithChunk(
      png,
      server::PngChunk("eXIf", server::ExifOrientation(6, true).substr(6))));
  ASSERT_TRUE(turned.ok());
  EXPECT_EQ(turned->width, 16);
  EXPECT_EQ(turned->height, 24);
  // Its last column was the first row.
  EXPECT_EQ(turned->data[3 * 15 + 0], image.data[0]);
  EXPECT_EQ(turned->data[3 * (16 + 15)], image.data[3]);
}

TEST(ReadPictureTest, CorruptExifTurnsNothing) {
  const image::RgbImage image = server::Gradient(24, 16);
  const std::string exif = server::ExifOrientation(6, true);
  for (size_t size = 0; size < exif.size() - 4; ++size) {
    ExpectDecodesAsTheServerDoes(
        absl::StrCat(size, " bytes"),
        server::WithExif(server::EncodeJpeg(image), exif.substr(0, size)));
    ExpectDecodesAsTheServerDoes(
        absl::StrCat(size, " bytes in a PNG"),
        server::WithChunk(server::EncodePng(image),
                          server::PngChunk("eXIf", exif.substr(0, size))));
  }
}

TEST(ReadPictureTest, RefusesWhatIsNoPicture) {
  ExpectRefused("empty", "", "the first of 0 bytes");
  ExpectRefused("text", "a cup", "the first of 5 bytes");
  ExpectRefused("GIF", "GIF89a", "JPEG, PNG or WebP");
  ExpectRefused("JPEG's magic", "\xFF\xD8\xFF", "JPEG: ");
  ExpectRefused("PNG's magic", "\x89PNG\r\n\x1A\n", "PNG: no complete header");
  ExpectRefused("WebP's magic", "RIFF1234WEBP", "WebP: the header is broken");
}

TEST(ReadPictureTest, RefusesTruncatedPictures) {
  const image::RgbImage image = server::Gradient(60, 45);
  for (const std::string& bytes :
       {server::EncodeJpeg(image), server::EncodePng(image),
        server::EncodeWebp(image, false), server::EncodeWebp(image, true)}) {
    for (int percent = 10; percent < 100; percent += 10) {
      ExpectRefused(absl::StrCat(percent, " %"),
                    bytes.substr(0, bytes.size() * percent / 100), ": ");
    }
  }
}

TEST(ReadPictureTest, RefusesWhatIsTooLargeBeforeDecoding) {
  std::string jpeg = server::EncodeJpeg(server::Gradient(16, 16));
  jpeg.replace(jpeg.find("\xFF\xC0") + 5, 4, "\x40\x01\x00\x10", 4);
  ExpectRefused("JPEG 16 x 16385", jpeg, "16 x 16385 pixels");
  const auto header = [](const std::string& sides) {
    return "\x89PNG\r\n\x1A\n" +
           server::PngChunk("IHDR", sides + std::string("\x08\x02\0\0\0", 5));
  };
  ExpectRefused("PNG 10000 x 10000",
                header(std::string("\0\0\x27\x10\0\0\x27\x10", 8)),
                "10000 x 10000 pixels");
  ExpectRefused("PNG 4294967295 x 1",
                header(std::string("\xFF\xFF\xFF\xFF\0\0\0\1", 8)),
                "4294967295 x 1 pixels");
  ExpectRefused("PNG 0 x 1", header(std::string("\0\0\0\0\0\0\0\1", 8)),
                "0 x 1 pixels");
}

TEST(ReadPictureTest, RefusesWrongChecksumsAndAnimations) {
  std::string png = server::EncodePng(server::Gradient(8, 8));
  png[png.size() - 20] ^= 1;  // In IDAT.
  ExpectRefused("PNG", png, "PNG: ");
  ExpectRefused(
      "animated WebP",
      std::string("RIFF\x24\0\0\0WEBPVP8X\x0A\0\0\0\x02\0\0\0\7\0\0\7\0\0"
                  "ANIM\6\0\0\0\0\0\0\0\0\0",
                  44),
      "WebP: animated");
}

TEST(WritePngTest, IsReadBack) {
  const image::RgbImage image = server::Gradient(37, 23);
  Picture picture;
  picture.width = image.width;
  picture.height = image.height;
  picture.data = image.data;
  const absl::StatusOr<std::string> png = WritePng(picture);
  ASSERT_TRUE(png.ok()) << png.status();
  const absl::StatusOr<Picture> read = ReadPicture(*png);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->width, 37);
  EXPECT_EQ(read->height, 23);
  EXPECT_EQ(read->data, picture.data);
}

TEST(WritePngTest, APictureWithoutPixelsIsRefused) {
  EXPECT_EQ(WritePng(Picture()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sfmamba::client
