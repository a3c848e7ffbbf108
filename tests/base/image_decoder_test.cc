// Tests the decoding of valid pictures. bad_image_test.cc tests invalid ones.

#include "base/image_decoder.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>  // jpeglib.h needs FILE and size_t.
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "jpeglib.h"
#include "tests/server/picture.h"

namespace sfmamba::base {
namespace {

const ImageLimits kLimits;

RgbImage Decode(absl::string_view bytes, bool apply_orientation = false,
                int min_side = 0) {
  absl::StatusOr<RgbImage> image =
      DecodeImage(bytes, kLimits, apply_orientation, min_side);
  EXPECT_TRUE(image.ok()) << image.status();
  return image.ok() ? *std::move(image) : RgbImage();
}

int Pixel(const RgbImage& image, int x, int y, int channel) {
  return image.data[3 * (y * image.width + x) + channel];
}

TEST(ImageHeaderTest, ReadsFormatAndSize) {
  const RgbImage picture = server::Gradient(37, 21);
  const struct {
    ImageFormat format;
    std::string bytes;
  } cases[] = {{ImageFormat::kJpeg, server::EncodeJpeg(picture)},
               {ImageFormat::kPng, server::EncodePng(picture)},
               {ImageFormat::kWebp, server::EncodeWebp(picture, true)},
               {ImageFormat::kWebp, server::EncodeWebp(picture, false)}};
  for (const auto& c : cases) {
    const absl::StatusOr<ImageHeader> header =
        ReadImageHeader(c.bytes, kLimits);
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->format, c.format);
    EXPECT_EQ(header->width, 37);
    EXPECT_EQ(header->height, 21);
    EXPECT_EQ(header->orientation, 1);
  }
}

TEST(DecodeImageTest, LosslessFormatsGiveTheSamePixels) {
  const RgbImage picture = server::Gradient(37, 21);
  EXPECT_EQ(Decode(server::EncodePng(picture)).data, picture.data);
  EXPECT_EQ(Decode(server::EncodeWebp(picture, true)).data, picture.data);
}

TEST(DecodeImageTest, LossyFormatsGiveNearlyTheSamePixels) {
  const RgbImage picture = server::Gradient(64, 48);
  EXPECT_LE(server::MaxDifference(Decode(server::EncodeJpeg(picture)), picture),
            12);
  EXPECT_LE(server::MaxDifference(Decode(server::EncodeWebp(picture, false)),
                                  picture),
            16);
}

TEST(DecodeImageTest, ProgressiveJpegIsTheSameAsBaseline) {
  const RgbImage picture = server::Gradient(64, 48);
  const std::string progressive = server::EncodeJpeg(
      64, 48, 3, picture.data.data(),
      [](auto& compress) { jpeg_simple_progression(&compress); });
  EXPECT_EQ(Decode(progressive).data, Decode(server::EncodeJpeg(picture)).data);
}

// Decodes the picture. DecodeImage() reports repeatedly how many rows are done.
// Returns the last reported number. The rows that are done must already have
// their final pixels.
int RowsTold(absl::string_view bytes, bool apply_orientation) {
  const RgbImage whole = Decode(bytes, apply_orientation);
  int told = 0;
  const auto image = DecodeImage(
      bytes, kLimits, apply_orientation, /*min_side=*/0, DecodeWatch(),
      [&](const RgbImage& picture, int rows) {
        EXPECT_GE(rows, told);
        told = rows;
        EXPECT_TRUE(std::equal(picture.data.begin(),
                               picture.data.begin() + 3 * picture.width * rows,
                               whole.data.begin()));
      });
  EXPECT_TRUE(image.ok());
  return told;
}

TEST(DecodeImageTest, TellsOfRowsThatAreDone) {
  const RgbImage picture = server::Gradient(64, 48);
  EXPECT_EQ(RowsTold(server::EncodeJpeg(picture), true), 47);
  EXPECT_EQ(RowsTold(server::EncodePng(picture), true), 0);
  const std::string turned =
      server::WithExif(server::EncodeJpeg(picture),
                       server::ExifOrientation(6, /*little_endian=*/true));
  EXPECT_EQ(RowsTold(turned, true), 0);
  EXPECT_EQ(RowsTold(turned, false), 47);
}

TEST(DecodeImageTest, GreyJpegHasEqualChannels) {
  std::vector<uint8_t> grey(32 * 32);
  for (int i = 0; i < grey.size(); ++i) grey[i] = i / 4;
  const RgbImage image = Decode(server::EncodeJpeg(32, 32, 1, grey.data()));
  ASSERT_EQ(image.data.size(), 3 * grey.size());
  for (int i = 0; i < grey.size(); ++i) {
    EXPECT_NEAR(image.data[3 * i], grey[i], 8);
    EXPECT_EQ(image.data[3 * i], image.data[3 * i + 1]);
    EXPECT_EQ(image.data[3 * i], image.data[3 * i + 2]);
  }
}

TEST(DecodeImageTest, CmykJpegIsTakenAsInverted) {
  std::vector<uint8_t> cmyk;
  for (int i = 0; i < 16 * 16; ++i)
    cmyk.insert(cmyk.end(), {200, 100, 50, 255});
  for (int i = 0; i < 16 * 16; ++i)
    cmyk.insert(cmyk.end(), {200, 100, 50, 128});
  const RgbImage image = Decode(server::EncodeJpeg(16, 32, 4, cmyk.data()));
  for (int c = 0; c < 3; ++c) {
    const int inked[] = {200, 100, 50};
    EXPECT_NEAR(Pixel(image, 3, 3, c), inked[c], 3);
    EXPECT_NEAR(Pixel(image, 3, 28, c), inked[c] * 128 / 255, 3);
  }
}

TEST(DecodeImageTest,
     AJpegIsScaledDownToTheSmallestSufficientScaleThatSavesTime) {
  const std::string bytes = server::EncodeJpeg(server::Gradient(1000, 667));
  const struct {
    int min_side, width, height;
  } cases[] = {{0, 1000, 667},   {1, 125, 84},     {84, 125, 84},
               {85, 250, 167},   {167, 250, 167},  {168, 500, 334},
               {334, 500, 334},  {335, 1000, 667}, {418, 1000, 667},
               {667, 1000, 667}, {5000, 1000, 667}};
  for (const auto& c : cases) {
    const RgbImage image = Decode(bytes, false, c.min_side);
    EXPECT_EQ(image.width, c.width) << "min_side " << c.min_side;
    EXPECT_EQ(image.height, c.height) << "min_side " << c.min_side;
    EXPECT_LE(server::MaxDifference(image, server::Gradient(c.width, c.height)),
              16);
  }
}

TEST(DecodeImageTest, OtherFormatsAreNotScaled) {
  EXPECT_EQ(Decode(server::EncodePng(server::Gradient(64, 64)), false, 8).width,
            64);
  EXPECT_EQ(Decode(server::EncodeWebp(server::Gradient(64, 64), true), false, 8)
                .width,
            64);
}

TEST(DecodeImageTest, EveryKindOfPngBecomesRgb) {
  constexpr int kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgba = 6;
  const struct {
    std::string name;
    server::PngOptions options;
    std::string row;            // 8 pixels in the PNG's format.
    std::vector<int> expected;  // The RGB values of the first two pixels.
  } cases[] = {
      {"grey 1", {kGrey, 1}, "\x40", {0, 0, 0, 255, 255, 255}},
      {"grey 2", {kGrey, 2}, "\x60\x00", {85, 85, 85, 170, 170, 170}},
      {"grey 4", {kGrey, 4}, "\x1F\x00\x00\x00", {17, 17, 17, 255, 255, 255}},
      {"grey 8", {kGrey, 8}, "\x07\xF0......", {7, 7, 7, 240, 240, 240}},
      {"grey 16",
       {kGrey, 16},
       "\x07\xFF\xF0\x01............",
       {7, 7, 7, 240, 240, 240}},
      {"palette", {kPalette, 2}, "\xB0\x00", {120, 140, 160, 180, 200, 220}},
      {"grey with alpha",
       {kGreyAlpha, 8},
       "\x07\x01\xF0\x80............",
       {7, 7, 7, 240, 240, 240}},
      {"RGB 16",
       {kRgb, 16},
       "\x01\xFF\x02\xFF\x03\xFF\x04\xFF\x05\xFF\x06\xFF"
       "....................................",
       {1, 2, 3, 4, 5, 6}},
      {"RGB with alpha",
       {kRgba, 8},
       "\x01\x02\x03\x7F\x04\x05\x06\x7F........................",
       {1, 2, 3, 4, 5, 6}},
  };
  for (auto& c : cases) {
    for (bool interlaced : {false, true}) {
      server::PngOptions options = c.options;
      options.interlaced = interlaced;
      std::string rows;
      // The number of samples per pixel, by colour type.
      const int bits[] = {1, 0, 3, 1, 2, 0, 4};
      const int stride = bits[options.color_type] * options.bit_depth;
      for (int y = 0; y < 8; ++y) {
        std::string row = c.row;
        row.resize(stride);
        rows += row;
      }
      const RgbImage image = Decode(server::EncodePng(8, 8, options, rows));
      ASSERT_EQ(image.data.size(), 3 * 8 * 8) << c.name;
      for (int y = 0; y < 8; ++y) {
        EXPECT_EQ(
            std::vector<int>(&image.data[24 * y], &image.data[24 * y + 6]),
            c.expected)
            << c.name << ", row " << y << ", interlaced " << interlaced;
      }
    }
  }
}

TEST(DecodeImageTest, ColourProfilesAreIgnored) {
  const RgbImage picture = server::Gradient(8, 8);
  const std::string png = server::EncodePng(picture);
  EXPECT_EQ(Decode(server::WithChunk(
                       png, server::PngChunk("iCCP", "not a profile at all")))
                .data,
            picture.data);
  const std::string jpeg = server::EncodeJpeg(picture);
  const std::string segment("\xFF\xE2\0\x14ICC_PROFILE\0\1\1junk", 22);
  const std::string with_profile = jpeg.substr(0, 2) + segment + jpeg.substr(2);
  EXPECT_EQ(Decode(with_profile).data, Decode(jpeg).data);
}

TEST(DecodeImageTest, WhatFollowsThePictureIsIgnored) {
  const RgbImage picture = server::Gradient(8, 8);
  EXPECT_EQ(Decode(server::EncodePng(picture) + "trailer").data, picture.data);
  EXPECT_EQ(Decode(server::EncodeJpeg(picture) + "trailer").data,
            Decode(server::EncodeJpeg(picture)).data);
}

// Checks where two corners of the stored picture appear in the decoded picture.
// Source: EXIF 2.3, Orientation.
TEST(OrientationTest, PutsTheCornersWhereTheyBelong) {
  constexpr int kLeft = 0, kRight = -1, kTop = 0, kBottom = -1;
  const struct {
    int orientation;
    // Where the first pixel of the stored first row appears.
    int first[2];
    // Where the last pixel of the stored first row appears.
    int second[2];
  } cases[] = {
      {1, {kLeft, kTop}, {kRight, kTop}},
      {2, {kRight, kTop}, {kLeft, kTop}},
      {3, {kRight, kBottom}, {kLeft, kBottom}},
      {4, {kLeft, kBottom}, {kRight, kBottom}},
      {5, {kLeft, kTop}, {kLeft, kBottom}},
      {6, {kRight, kTop}, {kRight, kBottom}},
      {7, {kRight, kBottom}, {kRight, kTop}},
      {8, {kLeft, kBottom}, {kLeft, kTop}},
  };
  const RgbImage stored = Decode(server::EncodeJpeg(server::Gradient(48, 32)));
  for (const auto& c : cases) {
    for (bool little_endian : {false, true}) {
      const std::string bytes = server::WithExif(
          server::EncodeJpeg(server::Gradient(48, 32)),
          server::ExifOrientation(c.orientation, little_endian));
      EXPECT_EQ(ReadImageHeader(bytes, kLimits)->orientation, c.orientation);
      EXPECT_EQ(ReadImageHeader(bytes, kLimits)->width, 48);
      const RgbImage seen = Decode(bytes, true);
      EXPECT_EQ(seen.width, c.orientation < 5 ? 48 : 32);
      EXPECT_EQ(seen.height, c.orientation < 5 ? 32 : 48);
      const auto at = [&](const int corner[2], int channel) {
        return Pixel(seen, corner[0] == 0 ? 0 : seen.width - 1,
                     corner[1] == 0 ? 0 : seen.height - 1, channel);
      };
      for (int channel = 0; channel < 3; ++channel) {
        EXPECT_EQ(at(c.first, channel), Pixel(stored, 0, 0, channel))
            << "orientation " << c.orientation;
        EXPECT_EQ(at(c.second, channel), Pixel(stored, 47, 0, channel))
            << "orientation " << c.orientation;
      }
      EXPECT_EQ(Decode(bytes, false).data, stored.data) << "not asked for";
    }
  }
}

TEST(OrientationTest, CorruptExifIsIgnored) {
  const std::string good = server::ExifOrientation(6, true);
  std::vector<std::string> broken;
  for (size_t size = 6; size < 26; ++size) {
    broken.push_back(good.substr(0, size));  // The block ends before the value.
  }
  const auto patched = [&](size_t offset, const std::string& bytes) {
    return std::string(good).replace(offset, bytes.size(), bytes);
  };
  // Each line adds a block with one broken part. The comment at the end of the
  // line names this part.
  broken.push_back(patched(6, "XX"));                   // Byte order.
  broken.push_back(patched(8, "\x2B"));                 // TIFF's 42.
  broken.push_back(patched(10, "\xFF\xFF\xFF\xFF"));    // Directory offset.
  broken.push_back(patched(14, std::string(2, '\0')));  // No entries.
  broken.push_back(patched(18, "\x05"));                // Type RATIONAL.
  broken.push_back(patched(20, "\x02"));                // Two values.
  broken.push_back(patched(24, std::string(1, '\0')));  // Orientation 0.
  broken.push_back(patched(24, "\x09"));                // Orientation 9.
  const std::string jpeg = server::EncodeJpeg(server::Gradient(16, 8));
  for (const std::string& exif : broken) {
    const std::string bytes = server::WithExif(jpeg, exif);
    const absl::StatusOr<ImageHeader> header = ReadImageHeader(bytes, kLimits);
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->orientation, 1) << exif.size() << " bytes of EXIF";
    EXPECT_EQ(Decode(bytes, true).data, Decode(jpeg).data);
  }
}

TEST(OrientationTest, IsReadFromPngAndWebpToo) {
  const RgbImage picture = server::Gradient(6, 4);
  const std::string exif = server::ExifOrientation(8, false);
  const std::string png = server::WithChunk(
      server::EncodePng(picture), server::PngChunk("eXIf", exif.substr(6)));
  EXPECT_EQ(ReadImageHeader(png, kLimits)->orientation, 8);
  EXPECT_EQ(Decode(png, true).width, 4);

  // The file has the extended format. Its chunk VP8X has the flag for EXIF
  // (0x08), and the sides minus one.
  const auto size = [](uint32_t n) {
    return std::string({static_cast<char>(n), static_cast<char>(n >> 8), 0, 0});
  };
  // A chunk of odd size is followed by a padding byte, which is not included in
  // its size.
  for (const std::string& before :
       {std::string(), "note" + size(2) + "ab",
        "note" + size(3) + std::string("abc\0", 4)}) {
    const std::string chunks = "WEBPVP8X" + size(10) +
                               std::string("\x08\0\0\0\5\0\0\3\0\0", 10) +
                               server::EncodeWebp(picture, true).substr(12) +
                               before + "EXIF" + size(exif.size()) + exif;
    const std::string webp = "RIFF" + size(chunks.size()) + chunks;
    const absl::StatusOr<ImageHeader> header = ReadImageHeader(webp, kLimits);
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->orientation, 8);
    EXPECT_EQ(Decode(webp, true).width, 4);
  }
}

}  // namespace
}  // namespace sfmamba::base
