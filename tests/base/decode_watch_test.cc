#include "base/decode_watch.h"

#include <cstdint>
#include <cstdio>  // jpeglib.h needs FILE and size_t.
#include <string>

#include "base/image_decoder.h"
#include "gtest/gtest.h"
#include "jpeglib.h"
#include "tests/server/picture.h"
#include "zlib.h"

namespace sfmamba::base {
namespace {

// A clock that advances by a second each time it is read.
class CountingClock {
 public:
  DecodeWatch::Clock clock() {
    return [this] { return absl::Seconds(looks_++); };
  }
  int looks() const { return looks_; }

 private:
  int looks_ = 0;
};

constexpr absl::Duration kLong = absl::Hours(10);

TEST(DecodeWatchTest, ExpiresByItsClock) {
  absl::Duration now = absl::Seconds(100);
  const DecodeWatch watch(absl::Seconds(1), [&now] { return now; });
  EXPECT_FALSE(watch.Expired());
  now += absl::Seconds(1);
  EXPECT_FALSE(watch.Expired());
  now += absl::Nanoseconds(1);
  EXPECT_TRUE(watch.Expired());
  EXPECT_EQ(watch.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(watch.status().message().find("1s"), std::string::npos);
}

TEST(DecodeWatchTest, WithoutLimitItNeverExpires) {
  const DecodeWatch watch(absl::InfiniteDuration(),
                          [] { return absl::InfiniteDuration(); });
  EXPECT_FALSE(watch.Expired());
}

TEST(DecodeWatchTest, ExpiresOnceThePictureIsNotWanted) {
  bool wanted = true;
  const DecodeWatch watch(absl::InfiniteDuration(), ThreadCpuTime,
                          [&wanted] { return wanted; });
  EXPECT_FALSE(watch.Expired());
  wanted = false;
  EXPECT_TRUE(watch.Expired());
  EXPECT_EQ(watch.status().code(), absl::StatusCode::kCancelled);
}

TEST(DecodeWatchTest, ItsClockIsTheThreadsWork) {
  const absl::Duration start = ThreadCpuTime();
  EXPECT_GT(start, absl::ZeroDuration());
  volatile int work = 0;
  while (ThreadCpuTime() == start) work = work + 1;
  EXPECT_GT(ThreadCpuTime(), start);
}

std::string ProgressiveJpeg(const RgbImage& image) {
  return server::EncodeJpeg(image.width, image.height, 3, image.data.data(),
                            [](jpeg_compress_struct& compress) {
                              jpeg_simple_progression(&compress);
                            });
}

std::string InterlacedPng(const RgbImage& image) {
  server::PngOptions options;
  options.interlaced = true;
  return server::EncodePng(image.width, image.height, options,
                           std::string(image.data.begin(), image.data.end()));
}

// Returns random pixels. They cannot be compressed, so even a WebP of them has
// many kilobytes.
RgbImage Noise(int width, int height) {
  RgbImage image = server::Gradient(width, height);
  uint32_t state = 1;
  for (uint8_t& value : image.data) {
    state = state * 1664525 + 1013904223;
    value = state >> 24;
  }
  return image;
}

absl::StatusCode CodeOf(const absl::Status& status) { return status.code(); }

TEST(DecodeWatchTest, EachFormatIsLeftOnTheWay) {
  const RgbImage picture = Noise(512, 512);
  const struct {
    const char* name;
    std::string bytes;
  } kCases[] = {
      {"JPEG", server::EncodeJpeg(picture)},
      {"progressive JPEG", ProgressiveJpeg(picture)},
      {"PNG", server::EncodePng(picture)},
      {"interlaced PNG", InterlacedPng(picture)},
      {"WebP", server::EncodeWebp(picture, /*lossless=*/false)},
      {"lossless WebP", server::EncodeWebp(picture, /*lossless=*/true)},
  };
  for (const auto& test : kCases) {
    CountingClock whole;
    const absl::StatusOr<RgbImage> unhurried = DecodeImage(
        test.bytes, ImageLimits(), true, 0, DecodeWatch(kLong, whole.clock()));
    const absl::StatusOr<RgbImage> unwatched =
        DecodeImage(test.bytes, ImageLimits(), true, 0);
    ASSERT_TRUE(unhurried.ok() && unwatched.ok()) << test.name;
    EXPECT_EQ(unhurried->data, unwatched->data) << test.name;
    ASSERT_GE(whole.looks(), 5) << test.name;

    CountingClock hurried;
    EXPECT_EQ(CodeOf(DecodeImage(
                         test.bytes, ImageLimits(), true, 0,
                         DecodeWatch(absl::Milliseconds(2500), hurried.clock()))
                         .status()),
              absl::StatusCode::kDeadlineExceeded)
        << test.name;
    EXPECT_EQ(hurried.looks(), 4) << test.name << ": at once";

    int asked = 0;
    EXPECT_EQ(CodeOf(DecodeImage(test.bytes, ImageLimits(), true, 0,
                                 DecodeWatch(kLong, ThreadCpuTime,
                                             [&asked] { return ++asked < 3; }))
                         .status()),
              absl::StatusCode::kCancelled)
        << test.name;
    EXPECT_EQ(asked, 4) << test.name << ": once more for the status";
  }
}

TEST(DecodeWatchTest, WhatIsDecodedInOnePieceIsFoundOutAfterIt) {
  // A lossless WebP of one colour has only a few bytes at any size.
  RgbImage flat = server::Gradient(600, 400);
  flat.data.assign(flat.data.size(), 77);
  for (const std::string& bytes :
       {server::EncodeWebp(flat, /*lossless=*/true),
        server::EncodeJpeg(server::Gradient(4, 4))}) {
    CountingClock clock;
    EXPECT_EQ(
        CodeOf(DecodeImage(bytes, ImageLimits(), true, 0,
                           DecodeWatch(absl::Milliseconds(500), clock.clock()))
                   .status()),
        absl::StatusCode::kDeadlineExceeded);
  }
}

// A PNG may contain further compressed data after the data of its last row. A
// few megabytes of such data may decompress to several gigabytes.
TEST(DecodeWatchTest, PngDataBehindTheLastRowAreLeftOnTheWay) {
  std::string packed(100 << 10, '\0');
  const std::string unpacked(50 << 20, '\0');
  uLongf size = packed.size();
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(&packed[0]), &size,
                     reinterpret_cast<const Bytef*>(unpacked.data()),
                     unpacked.size()),
            Z_OK);
  packed.resize(size);
  const std::string header =
      server::EncodePng(server::Gradient(8, 8)).substr(0, 33);
  const std::string png =
      header + server::PngChunk("IDAT", packed) + server::PngChunk("IEND", "");
  CountingClock clock;
  EXPECT_EQ(
      CodeOf(DecodeImage(png, ImageLimits(), true, 0,
                         DecodeWatch(absl::Milliseconds(2500), clock.clock()))
                 .status()),
      absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(clock.looks(), 4) << "at once";
}

TEST(DecodeWatchTest, ASlowPictureIsRefusedByTheRealClock) {
  const std::string slow = ProgressiveJpeg(Noise(1024, 1024));
  EXPECT_EQ(CodeOf(DecodeImage(slow, ImageLimits(), true, 0,
                               DecodeWatch(absl::Milliseconds(1)))
                       .status()),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(
      DecodeImage(slow, ImageLimits(), true, 0, DecodeWatch(kLong)).ok());
}

}  // namespace
}  // namespace sfmamba::base
