// Changes valid masks, maps and pictures at random, in the same way in each
// run. For any bytes, the client's decoders must return an error with a reason
// or a valid result.
#include <cstdint>
#include <string>
#include <vector>

#include "client/picture/draw.h"
#include "client/picture/masks.h"
#include "client/picture/picture_reader.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "tests/fuzz/mutator.h"
#include "tests/server/picture.h"

namespace sfmamba {
namespace {

constexpr int kWidth = 24, kHeight = 18;

void ExpectSound(const absl::StatusOr<client::Mask>& mask, int* good,
                 int* bad) {
  if (!mask.ok()) {
    EXPECT_EQ(mask.status().code(), absl::StatusCode::kDataLoss);
    ++*bad;
    return;
  }
  EXPECT_GE(mask->left, 0);
  EXPECT_GE(mask->top, 0);
  EXPECT_EQ(mask->data.size(), size_t{1} * mask->width * mask->height);
  ++*good;
}

TEST(AnswerFuzzTest, RleIsRefusedOrFillsItsPicture) {
  Mutator mutator;
  int good = 0, bad = 0;
  for (int i = 0; i < 50000; ++i) {
    v1::CocoRle rle;
    rle.set_width(kWidth);
    rle.set_height(kHeight);
    // If `i` is odd, the counts are three runs of one character each. The sum
    // of the runs may differ from the number of pixels.
    rle.set_counts(i % 2 == 0 ? mutator.Mutate("Q22N1O2O2N1n<")
                              : std::string(1, '0' + mutator.Below(16)) + "0" +
                                    std::string(1, '0' + mutator.Below(64)));
    if (i % 2 == 1) rle.set_height(1 + mutator.Below(3));
    if (i % 2 == 1) rle.set_width(1 + mutator.Below(9));
    const absl::StatusOr<client::Mask> mask = client::DecodeRle(rle);
    ExpectSound(mask, &good, &bad);
    if (!mask.ok()) continue;
    EXPECT_LE(mask->left + mask->width, rle.width());
    EXPECT_LE(mask->top + mask->height, rle.height());
  }
  EXPECT_GT(good, 100);
  EXPECT_GT(bad, 1000);
}

TEST(AnswerFuzzTest, PngMasksAndMapsAreRefusedOrWhole) {
  const std::string crop = server::EncodePng(kWidth, kHeight, {0, 1},
                                             std::string(3 * kHeight, '\x5A'));
  const std::string map = server::EncodePng(
      kWidth, kHeight, {0, 8}, std::string(kWidth * kHeight, '\7'));
  Mutator mutator;
  int good = 0, bad = 0;
  for (int i = 0; i < 5000; ++i) {
    v1::BoundingBox box;
    box.set_x_max(kWidth);
    box.set_y_max(kHeight);
    const bool keep = i % 10 == 0;
    ExpectSound(client::DecodePngCrop(keep ? crop : mutator.Mutate(crop), box),
                &good, &bad);
    const absl::StatusOr<client::IndexMap> decoded =
        client::DecodePngIndex(keep ? map : mutator.Mutate(map));
    if (!decoded.ok()) continue;
    EXPECT_EQ(decoded->data.size(), decoded->width * decoded->height);
  }
  EXPECT_GE(good, 500);
  EXPECT_GT(bad, 1000);
}

// Parses a whole answer from its serialized form and draws it.
TEST(AnswerFuzzTest, AnswersAreRefusedOrDrawn) {
  client::Picture picture;
  picture.width = kWidth;
  picture.height = kHeight;
  picture.data.resize(3 * kWidth * kHeight);
  v1::DetectResult detected;
  detected.set_image_width(kWidth);
  detected.set_image_height(kHeight);
  v1::Detection* detection = detected.add_detections();
  detection->set_label("cup");
  detection->set_score(0.5);
  detection->mutable_box()->set_x_max(kWidth);
  detection->mutable_box()->set_y_max(kHeight);
  *detected.add_detections() = *detection;
  detection->set_png_crop(server::EncodePng(kWidth, kHeight, {0, 1},
                                            std::string(3 * kHeight, '\x5A')));
  v1::SegmentResult segmented;
  segmented.set_width(kWidth);
  segmented.set_height(kHeight);
  v1::RawIndexMap* raw = segmented.mutable_raw();
  raw->set_width(kWidth);
  raw->set_height(kHeight);
  raw->set_bytes_per_pixel(1);
  raw->set_data(std::string(kWidth * kHeight, '\2'));
  const std::string detected_bytes = detected.SerializeAsString();
  const std::string segmented_bytes = segmented.SerializeAsString();

  const google::protobuf::LogSilencer silencer;
  Mutator mutator;
  int drawn = 0, refused = 0;
  const auto count = [&](const absl::StatusOr<client::Picture>& result) {
    if (result.ok()) {
      ++drawn;
      EXPECT_EQ(result->data.size(),
                size_t{3} * result->width * result->height);
      return;
    }
    ++refused;
    EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
  };
  for (int i = 0; i < 4000; ++i) {
    v1::DetectResult detect;
    if (detect.ParseFromString(mutator.Mutate(detected_bytes))) {
      count(client::DrawDetections(picture, detect));
    }
    v1::SegmentResult segment;
    if (segment.ParseFromString(mutator.Mutate(segmented_bytes))) {
      count(client::DrawSegmentation(picture, segment));
    }
  }
  EXPECT_GT(drawn, 200);
  EXPECT_GT(refused, 200);
}

TEST(AnswerFuzzTest, PicturesAreRefusedOrWhole) {
  const image::RgbImage image = server::Gradient(kWidth, kHeight);
  const std::vector<std::string> pictures = {
      server::EncodeJpeg(image),
      server::WithExif(server::EncodeJpeg(image),
                       server::ExifOrientation(6, true)),
      server::EncodePng(image),
      server::WithChunk(
          server::EncodePng(image),
          server::PngChunk("eXIf",
                           server::ExifOrientation(8, false).substr(6))),
      server::EncodeWebp(image, false),
      server::EncodeWebp(image, true)};
  Mutator mutator;
  int good = 0, bad = 0;
  for (int i = 0; i < 6000; ++i) {
    const absl::StatusOr<client::Picture> picture =
        client::ReadPicture(mutator.Mutate(pictures[i % pictures.size()]));
    if (!picture.ok()) {
      EXPECT_EQ(picture.status().code(), absl::StatusCode::kInvalidArgument);
      ++bad;
      continue;
    }
    EXPECT_EQ(picture->data.size(),
              size_t{3} * picture->width * picture->height);
    ++good;
  }
  EXPECT_GT(good, 100);
  EXPECT_GT(bad, 1000);
}

}  // namespace
}  // namespace sfmamba
