#include "server/image/keep_ratio.h"

#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "opencv2/core/utility.hpp"
#include "tests/testing/fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::image {
namespace {

// Converts [height, width, 3] to an image. The channels keep their order.
RgbImage ToImage(const at::Tensor& tensor) {
  const uint8_t* data = tensor.data_ptr<uint8_t>();
  return {static_cast<int>(tensor.size(1)), static_cast<int>(tensor.size(0)),
          std::vector<uint8_t>(data, data + tensor.numel())};
}

TEST(KeepRatioTest, SizesAgreeWithTheReference) {
  const at::Tensor table = Fixture("preprocess")["rescale_table"];
  ASSERT_GT(table.size(0), 50);
  for (int i = 0; i < table.size(0); ++i) {
    const int64_t* row = table.data_ptr<int64_t>() + 6 * i;
    const PictureSize original = {static_cast<int>(row[0]),
                                  static_cast<int>(row[1])};
    const PictureSize size = KeepRatioSize(original, row[3], row[2]);
    EXPECT_EQ(size.height, row[4]) << row[0] << " x " << row[1];
    EXPECT_EQ(size.width, row[5]) << row[0] << " x " << row[1];
  }
}

TEST(KeepRatioTest, PixelsAgreeWithTheReference) {
  const Fixture fixture("preprocess");
  const at::Tensor scale = fixture["scale"];
  const int long_side = scale.data_ptr<int64_t>()[0];
  const int short_side = scale.data_ptr<int64_t>()[1];
  for (int i : {0, 1}) {
    RgbImage image = ToImage(fixture[absl::StrCat("bgr.", i)]);
    const PictureSize size =
        KeepRatioSize({image.height, image.width}, short_side, long_side);
    const RgbImage resized = ResizeBilinear(std::move(image), size);
    const RgbImage expected = ToImage(fixture[absl::StrCat("resized_bgr.", i)]);
    EXPECT_EQ(resized.height, expected.height);
    EXPECT_EQ(resized.width, expected.width);
    EXPECT_EQ(resized.data, expected.data) << i;
  }
}

TEST(KeepRatioTest, NoPictureBecomesTooLargeOrEmpty) {
  for (int side : {1, 2, 3, 799, 800, 801, 16384}) {
    for (int other : {1, 2, 800, 16384}) {
      const PictureSize size = KeepRatioSize({side, other}, 800, 1333);
      EXPECT_GE(std::min(size.height, size.width), 1) << side << "x" << other;
      EXPECT_LE(std::min(size.height, size.width), 800);
      EXPECT_LE(std::max(size.height, size.width), 1333);
    }
  }
  EXPECT_EQ(KeepRatioSize({1, 16384}, 800, 1333).height, 1);
  EXPECT_EQ(KeepRatioSize({1, 16384}, 800, 1333).width, 1333);
  EXPECT_EQ(KeepRatioSize({1, 1}, 512, 2048).width, 512);
}

TEST(KeepRatioTest, APlainLineOfPixelsStaysPlain) {
  for (const auto& [height, width] : {std::pair{1, 16384}, {16384, 1}}) {
    RgbImage image{width, height, std::vector<uint8_t>(3 * height * width, 77)};
    const RgbImage resized = ResizeBilinear(
        std::move(image), KeepRatioSize({height, width}, 800, 1333));
    EXPECT_EQ(resized.data, std::vector<uint8_t>(3 * 1333, 77));
  }
}

TEST(KeepRatioTest, ThePixelsOfTheSameSizeAreUntouched) {
  RgbImage image{5, 4, {}};
  for (int i = 0; i < 60; ++i) image.data.push_back(4 * i);
  EXPECT_EQ(ResizeBilinear(image, {4, 5}).data, image.data);
}

TEST(KeepRatioTest, ThreadsGetWhatOneGets) {
  std::mt19937 random(3);
  RgbImage image{301, 203, {}};
  while (image.data.size() < 3 * 301 * 203) image.data.push_back(random());
  const RgbImage expected = ResizeBilinear(image, {540, 801});
  std::vector<RgbImage> resized(4);
  std::vector<std::thread> threads;
  for (RgbImage& result : resized) {
    threads.emplace_back([&] { result = ResizeBilinear(image, {540, 801}); });
  }
  for (std::thread& thread : threads) Join(thread, "a thread");
  for (const RgbImage& result : resized) EXPECT_EQ(result.data, expected.data);
}

// The decode pool already has one thread per processor.
TEST(KeepRatioTest, OpenCvStartsNoThreads) {
  ResizeBilinear(RgbImage{2, 2, std::vector<uint8_t>(12)}, {5, 5});
  EXPECT_EQ(cv::getNumThreads(), 1);
}

}  // namespace
}  // namespace sfmamba::image
