#include "client/picture/masks.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/picture.h"
#include "tests/testing/encode_masks.h"

namespace sfmamba::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// These are PNG's numbers of the colour types.
constexpr int kGrey = 0, kRgb = 2;

v1::CocoRle Rle(int height, int width, const std::string& counts) {
  v1::CocoRle rle;
  rle.set_height(height);
  rle.set_width(width);
  rle.set_counts(counts);
  return rle;
}

v1::BoundingBox Box(float x_min, float y_min, float x_max, float y_max) {
  v1::BoundingBox box;
  box.set_x_min(x_min);
  box.set_y_min(y_min);
  box.set_x_max(x_max);
  box.set_y_max(y_max);
  return box;
}

void ExpectMalformed(const absl::Status& status, const std::string& message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr(message));
}

TEST(DecodeRleTest, IsOfItsPicture) {
  base::Mask pixel;
  pixel.left = 2;
  pixel.top = 1;
  pixel.width = pixel.height = 1;
  pixel.data = {1};
  const absl::StatusOr<Mask> mask =
      DecodeRle(Rle(4, 5, base::EncodeRle(pixel, 0, 0, 4, 5)));
  ASSERT_TRUE(mask.ok()) << mask.status();
  EXPECT_TRUE(mask->At(2, 1));
  EXPECT_EQ(mask->Area(), 1);
}

TEST(DecodeRleTest, RefusesWhatIsMalformed) {
  const auto status = [](int height, int width, const std::string& counts) {
    return DecodeRle(Rle(height, width, counts)).status();
  };
  ExpectMalformed(status(4, -5, "d0"), "RLE: the picture is empty: -5 x 4");
  ExpectMalformed(status(10000, 10000, "0"), "RLE: 10000 x 10000 pixels");
  ExpectMalformed(status(4, 5, ""), "RLE: the runs have 0 pixels");
}

TEST(DecodePngCropTest, CoversTheRoundedBox) {
  const std::string png = server::EncodePng(3, 2, {kGrey, 1}, "\xA0\x40");
  const absl::StatusOr<Mask> mask = DecodePngCrop(png, Box(1.5, 2.25, 3.5, 4));
  ASSERT_TRUE(mask.ok()) << mask.status();
  EXPECT_EQ(mask->left, 1);
  EXPECT_EQ(mask->top, 2);
  EXPECT_EQ(mask->width, 3);
  EXPECT_EQ(mask->height, 2);
  EXPECT_THAT(mask->data, ElementsAre(1, 0, 1, 0, 1, 0));
}

TEST(DecodePngCropTest, ABoxWithoutSizeHasOnePixel) {
  const std::string png = server::EncodePng(1, 1, {kGrey, 1}, "\x80");
  EXPECT_TRUE(DecodePngCrop(png, Box(7, 7, 7, 7)).ok());
}

TEST(DecodePngCropTest, RefusesWhatIsMalformed) {
  const std::string png = server::EncodePng(3, 2, {kGrey, 1}, "\xA0\x40");
  const v1::BoundingBox box = Box(0, 0, 3, 2);
  ASSERT_TRUE(DecodePngCrop(png, box).ok());
  ExpectMalformed(DecodePngCrop("", box).status(), "this is nothing, 0 bytes");
  ExpectMalformed(DecodePngCrop(png.substr(0, 60), box).status(), "PNG: ");
  ExpectMalformed(DecodePngCrop(png, Box(0, 0, 3.5, 2)).status(),
                  "3 x 2 PNG of 1 bits, expected 4 x 2");
  ExpectMalformed(
      DecodePngCrop(server::EncodePng(3, 2, {kGrey, 8}, "abcdef"), box)
          .status(),
      "of 8 bits");
  ExpectMalformed(
      DecodePngCrop(server::EncodePng(3, 2, {kRgb, 8}, std::string(18, 'x')),
                    box)
          .status(),
      "colour type 2");
  for (const float side : {-1.0f, 1e9f, NAN, INFINITY, -INFINITY}) {
    ExpectMalformed(DecodePngCrop(png, Box(0, 0, side, 2)).status(), "side at");
    ExpectMalformed(DecodePngCrop(png, Box(0, side, 3, 2)).status(), "side at");
  }
}

TEST(DecodeMaskTest, ADetectionMayHaveNone) {
  const absl::StatusOr<Mask> mask = DecodeMask(v1::Detection());
  ASSERT_TRUE(mask.ok());
  EXPECT_EQ(mask->Area(), 0);
}

TEST(DecodeIndexMapTest, ReadsPng) {
  v1::SegmentResult result;
  result.set_width(3);
  result.set_height(1);
  result.set_png_index(server::EncodePng(3, 1, {kGrey, 8}, "\x01\xFE\xFF"));
  absl::StatusOr<IndexMap> map = DecodeIndexMap(result);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->ignore, 255);
  EXPECT_THAT(map->data, ElementsAre(1, 254, 255));
  result.set_png_index(server::EncodePng(
      3, 1, {kGrey, 16}, std::string("\x01\x02\x00\xFF\xFF\xFF", 6)));
  map = DecodeIndexMap(result);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->ignore, 65535);
  EXPECT_THAT(map->data, ElementsAre(258, 255, 65535));
}

// Chunks that only affect how a picture is displayed must not change indices.
TEST(DecodeIndexMapTest, IgnoresGamma) {
  v1::SegmentResult result;
  result.set_width(3);
  result.set_height(1);
  result.set_png_index(server::WithChunk(
      server::EncodePng(3, 1, {kGrey, 8}, "\x01\x80\xFE"),
      server::PngChunk("gAMA", std::string("\0\0\x27\x10", 4))));
  const absl::StatusOr<IndexMap> map = DecodeIndexMap(result);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_THAT(map->data, ElementsAre(1, 128, 254));
}

TEST(DecodeIndexMapTest, ReadsRawBytes) {
  v1::SegmentResult result;
  result.set_width(2);
  result.set_height(1);
  v1::RawIndexMap& raw = *result.mutable_raw();
  raw.set_width(2);
  raw.set_height(1);
  raw.set_bytes_per_pixel(1);
  raw.set_data("\x07\xFF");
  absl::StatusOr<IndexMap> map = DecodeIndexMap(result);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->ignore, 255);
  EXPECT_THAT(map->data, ElementsAre(7, 255));
  raw.set_bytes_per_pixel(2);
  raw.set_data("\x07\x01\xFF\xFF");
  map = DecodeIndexMap(result);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->ignore, 65535);
  EXPECT_THAT(map->data, ElementsAre(0x107, 65535));

  raw.set_data("\x07\x01\xFF");
  ExpectMalformed(DecodeIndexMap(result).status(), "3 bytes, expected 4");
  raw.set_bytes_per_pixel(3);
  ExpectMalformed(DecodeIndexMap(result).status(), "3 bytes a pixel");
  raw.set_bytes_per_pixel(1);
  raw.set_width(1 << 30);
  ExpectMalformed(DecodeIndexMap(result).status(), "1073741824 x 1 pixels");
}

TEST(DecodeIndexMapTest, ReadsAnRleOfEachClass) {
  const std::vector<uint16_t> expected = {4, 4, 65535, 300, 4, 300};
  const std::vector<std::string> strings =
      base::EncodeRlePerClass(expected, 2, 3, 301);
  v1::SegmentResult result;
  result.set_width(3);
  result.set_height(2);
  for (const int class_id : {4, 300}) {
    v1::ClassRle& item = *result.mutable_rle()->add_classes();
    item.set_class_id(class_id);
    *item.mutable_rle() = Rle(2, 3, strings[class_id]);
  }
  const absl::StatusOr<IndexMap> map = DecodeIndexMap(result);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->data, expected);

  v1::ClassRle& second = *result.mutable_rle()->mutable_classes(1);
  second.set_class_id(-1);
  ExpectMalformed(DecodeIndexMap(result).status(), "class -1");
  second.set_class_id(65535);
  ExpectMalformed(DecodeIndexMap(result).status(), "class 65535");
  second.set_class_id(5);
  second.mutable_rle()->set_width(2);
  ExpectMalformed(DecodeIndexMap(result).status(), "2 x 2, expected 3 x 2");
  *second.mutable_rle() = result.rle().classes(0).rle();
  ExpectMalformed(DecodeIndexMap(result).status(),
                  "class 5: has pixels of class 4");
  second.mutable_rle()->set_counts("?");
  ExpectMalformed(DecodeIndexMap(result).status(), "class 5: RLE");
}

TEST(DecodeIndexMapTest, RefusesWhatIsMalformed) {
  v1::SegmentResult result;
  result.set_width(3);
  result.set_height(1);
  ExpectMalformed(DecodeIndexMap(result).status(), "there is none");
  result.set_png_index("");
  ExpectMalformed(DecodeIndexMap(result).status(), "this is nothing, 0 bytes");
  result.set_png_index(server::EncodePng(2, 1, {kGrey, 8}, "ab"));
  ExpectMalformed(DecodeIndexMap(result).status(), "2 x 1, expected 3 x 1");
  result.set_png_index(server::EncodePng(3, 1, {kGrey, 4}, "ab"));
  ExpectMalformed(DecodeIndexMap(result).status(), "4 bits, expected 8 or 16");
  result.mutable_rle();
  result.set_height(-1);
  ExpectMalformed(DecodeIndexMap(result).status(), "3 x -1 pixels");
}

}  // namespace
}  // namespace sfmamba::client
