// Tests the decoding of grey PNGs. image_decoder_test.cc tests other PNGs.
#include "base/png_decoder.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/picture.h"

namespace sfmamba::base {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kGrey = 0, kRgb = 2, kGreyAlpha = 4;

void ExpectRefused(const std::string& bytes, absl::StatusCode code,
                   const std::string& message) {
  const absl::Status status = DecodeGreyPng(bytes, ImageLimits()).status();
  EXPECT_EQ(status.code(), code);
  EXPECT_THAT(status.message(), HasSubstr(message));
}

TEST(DecodeGreyPngTest, KeepsTheSamplesOfEachDepth) {
  for (const bool interlaced : {false, true}) {
    absl::StatusOr<GreyPng> grey = DecodeGreyPng(
        server::EncodePng(3, 2, {kGrey, 1, interlaced}, "\xA0\x40"),
        ImageLimits());
    ASSERT_TRUE(grey.ok()) << grey.status();
    EXPECT_EQ(grey->width, 3);
    EXPECT_EQ(grey->height, 2);
    EXPECT_EQ(grey->bit_depth, 1);
    EXPECT_THAT(grey->data, ElementsAre(1, 0, 1, 0, 1, 0));
    grey = DecodeGreyPng(
        server::EncodePng(2, 1, {kGrey, 4, interlaced}, "\x1F"), ImageLimits());
    ASSERT_TRUE(grey.ok()) << grey.status();
    EXPECT_THAT(grey->data, ElementsAre(1, 15));
    grey = DecodeGreyPng(
        server::EncodePng(2, 1, {kGrey, 16, interlaced}, "\x01\x02\xFE\xFF"),
        ImageLimits());
    ASSERT_TRUE(grey.ok()) << grey.status();
    EXPECT_THAT(grey->data, ElementsAre(0x102, 0xFEFF));
  }
}

TEST(DecodeGreyPngTest, OtherPicturesAreRefused) {
  constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
  ExpectRefused(server::EncodePng(1, 1, {kRgb, 8}, "abc"), kInvalid,
                "colour type 2");
  ExpectRefused(server::EncodePng(1, 1, {kGreyAlpha, 8}, "ab"), kInvalid,
                "colour type 4");
  ExpectRefused(server::EncodeJpeg(server::Gradient(8, 8)), kInvalid,
                "not a PNG");
}

TEST(DecodeGreyPngTest, BrokenBytesAreRefused) {
  const std::string png = server::EncodePng(3, 1, {kGrey, 8}, "abc");
  for (size_t size = 8; size < png.size(); ++size) {
    ExpectRefused(png.substr(0, size), absl::StatusCode::kInvalidArgument,
                  "PNG: ");
  }
  ImageLimits limits;
  limits.max_pixels = 2;
  EXPECT_EQ(DecodeGreyPng(png, limits).status().code(),
            absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace sfmamba::base
