#include "client/picture/masks.h"

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/weights/safetensors.h"
#include "server/image/rle.h"
#include "tests/server/picture.h"

namespace sfmamba::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kFixture[] = "tests/testing/testdata/heads/rle.safetensors";
constexpr int kGrey = 0, kRgb = 2;  // PNG's colour types.

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

// The mask's pixels in a picture, row by row.
std::vector<uint8_t> Pixels(const Mask& mask, int height, int width) {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) pixels.push_back(mask.At(x, y));
  }
  return pixels;
}

// What COCO's tools wrote.
TEST(DecodeRleTest, AgreesWithTheFixture) {
  const auto file = weights::SafetensorsFile::Open(kFixture);
  ASSERT_TRUE(file.ok()) << file.status();
  const weights::TensorView& masks = *(*file)->Find("masks");
  const int count = masks.shape[0], height = masks.shape[1],
            width = masks.shape[2];
  for (int i = 0; i < count; ++i) {
    const weights::TensorView& string =
        *(*file)->Find(absl::StrCat("string.", i));
    const absl::StatusOr<Mask> mask = DecodeRle(Rle(
        height, width, std::string(string.data.begin(), string.data.end())));
    ASSERT_TRUE(mask.ok()) << mask.status();
    const size_t pixels = height * width;
    const auto expected = masks.data.subspan(i * pixels, pixels);
    EXPECT_EQ(Pixels(*mask, height, width),
              std::vector<uint8_t>(expected.begin(), expected.end()))
        << i;
    EXPECT_EQ(mask->Area(), std::count(expected.begin(), expected.end(), 1));
  }
}

// Masks of all densities, as the server writes them.
TEST(DecodeRleTest, ReversesTheServersEncoding) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const int height = 1 + random() % 40, width = 1 + random() % 40;
    model::InstanceMask instance;
    instance.width = width;
    instance.height = height;
    const int density = random() % 9;
    for (int k = 0; k < width * height; ++k) {
      instance.data.push_back(random() % 8 < density);
    }
    const absl::StatusOr<Mask> mask = DecodeRle(
        Rle(height, width, image::EncodeRle(instance, 0, 0, height, width)));
    ASSERT_TRUE(mask.ok()) << mask.status();
    EXPECT_EQ(Pixels(*mask, height, width), instance.data);
  }
}

TEST(DecodeRleTest, KeepsTheSmallestRectangle) {
  image::RunLengths
      runs;  // In a picture of 4 rows: the pixels (2, 1) and (3, 2).
  runs.Add(9, 10);
  runs.Add(14, 15);
  const absl::StatusOr<Mask> mask =
      DecodeRle(Rle(4, 5, image::CompressCounts(runs.Counts(20))));
  ASSERT_TRUE(mask.ok()) << mask.status();
  EXPECT_EQ(mask->left, 2);
  EXPECT_EQ(mask->top, 1);
  EXPECT_EQ(mask->width, 2);
  EXPECT_EQ(mask->height, 2);
  EXPECT_THAT(mask->data, ElementsAre(1, 0, 0, 1));
  EXPECT_FALSE(mask->At(1, 1));
  EXPECT_FALSE(mask->At(100, -100));
}

TEST(DecodeRleTest, NoPixelIsAnEmptyMask) {
  const absl::StatusOr<Mask> mask =
      DecodeRle(Rle(4, 5, image::CompressCounts({20})));
  ASSERT_TRUE(mask.ok()) << mask.status();
  EXPECT_EQ(mask->width, 0);
  EXPECT_EQ(mask->height, 0);
  EXPECT_EQ(mask->Area(), 0);
}

TEST(DecodeRleTest, RefusesWhatIsMalformed) {
  const std::string twenty = image::CompressCounts({20});
  ASSERT_TRUE(DecodeRle(Rle(4, 5, twenty)).ok());
  const auto status = [](int height, int width, const std::string& counts) {
    return DecodeRle(Rle(height, width, counts)).status();
  };
  ExpectMalformed(status(0, 5, ""), "5 x 0 pixels");
  ExpectMalformed(status(4, -5, twenty), "-5 x 4 pixels");
  ExpectMalformed(status(10000, 10000, "0"), "10000 x 10000 pixels");
  ExpectMalformed(status(4, 5, ""), "0 pixels, expected 20");
  ExpectMalformed(status(4, 6, twenty), "20 pixels, expected 24");
  ExpectMalformed(status(4, 4, twenty), "20 pixels, 16 are left");
  ExpectMalformed(status(4, 5, image::CompressCounts({-1, 21})),
                  "run 0 has -1");
  // A difference that makes the fourth run negative: 2 - 3.
  ExpectMalformed(status(4, 5, "221M"), "run 3 has -1");
  ExpectMalformed(status(4, 5, " "), "no number at byte");
  ExpectMalformed(status(4, 5, "p"), "no number at byte");
  ExpectMalformed(status(4, 5, "\xFF"), "no number at byte");
  ExpectMalformed(status(4, 5, "d"), "no number at byte 1");  // Cut off.
  ExpectMalformed(status(4, 5, std::string(100, 'o')), "no number at byte");
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
  ExpectMalformed(DecodePngCrop("", box).status(), "no complete header");
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

// Chunks that tell how a picture looks do not change indices.
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
      image::EncodeRlePerClass(expected, 2, 3, 301);
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
  ExpectMalformed(DecodeIndexMap(result).status(), "no complete header");
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
