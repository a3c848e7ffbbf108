// Tests bytes that are not an acceptable picture. Each must be refused with the
// right code and must take little memory.

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>  // jpeglib.h needs FILE and size_t.
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/image_decoder.h"
#include "gtest/gtest.h"
#include "jpeglib.h"
#include "tests/server/picture.h"
#include "zlib.h"

namespace sfmamba::base {
namespace {

constexpr absl::StatusCode kUnsupported = absl::StatusCode::kUnimplemented;
constexpr absl::StatusCode kFailed = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kTooLarge = absl::StatusCode::kOutOfRange;

struct BadInput {
  std::string name;
  std::string bytes;
  absl::StatusCode code;
};

void ExpectRefused(const BadInput& input) {
  const absl::Status status =
      DecodeImage(input.bytes, ImageLimits(), true, 0).status();
  EXPECT_EQ(status.code(), input.code) << input.name << ": " << status;
  EXPECT_FALSE(status.message().empty()) << input.name;
}

// Expects that ReadImageHeader() refuses the picture, so that nothing is
// allocated for its pixels.
void ExpectRefusedByHeader(const BadInput& input) {
  EXPECT_EQ(ReadImageHeader(input.bytes, ImageLimits()).status().code(),
            input.code)
      << input.name;
  ExpectRefused(input);
}

RgbImage Noise(int width, int height) {
  std::mt19937 random(1);
  RgbImage image;
  image.width = width;
  image.height = height;
  for (int i = 0; i < 3 * width * height; ++i) image.data.push_back(random());
  return image;
}

std::string Progressive(const RgbImage& image) {
  return server::EncodeJpeg(
      image.width, image.height, 3, image.data.data(),
      [](jpeg_compress_struct& c) { jpeg_simple_progression(&c); });
}

// Overwrites a part of the JPEG with the string `bytes`. The part begins
// `offset` bytes after the start of the frame marker. Returns the changed JPEG.
std::string PatchFrame(std::string jpeg, int offset, const std::string& bytes) {
  const size_t baseline = jpeg.find("\xFF\xC0");
  const size_t at =
      baseline != std::string::npos ? baseline : jpeg.find("\xFF\xC2");
  return jpeg.replace(at + offset, bytes.size(), bytes);
}
constexpr int kMarker = 1, kPrecision = 4, kHeight = 5, kWidth = 7,
              kComponents = 9;

std::string Sides(int width, int height) {
  std::string bytes;
  for (int side : {width, height}) {
    for (int shift : {24, 16, 8, 0}) bytes.push_back(side >> shift);
  }
  return bytes;
}

// Returns the beginning of a PNG, which ends after the header. The sizes may be
// invalid.
std::string PngHeader(int width, int height) {
  return "\x89PNG\r\n\x1A\n" +
         server::PngChunk("IHDR", Sides(width, height) +
                                      std::string("\x08\x02\x00\x00\x00", 5));
}

std::string Deflate(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string result(size, '\0');
  compress2(reinterpret_cast<Bytef*>(&result[0]), &size,
            reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 9);
  result.resize(size);
  return result;
}

int64_t PeakMemory() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

TEST(BadImageTest, OtherFormatsAreRefusedByTheirFirstBytes) {
  const std::string nul(1, '\0');
  const BadInput inputs[] = {
      {"empty", "", kUnsupported},
      {"one byte", "\xFF", kUnsupported},
      {"zeros", std::string(1000, '\0'), kUnsupported},
      {"text", "a picture of a chair", kUnsupported},
      {"HTML", "<!DOCTYPE html><html><body>404</body></html>", kUnsupported},
      {"SVG", "<svg xmlns='http://www.w3.org/2000/svg'/>", kUnsupported},
      {"GIF", "GIF89a\x01" + nul + "\x01" + nul + nul + nul, kUnsupported},
      {"TIFF, little endian", "II*" + nul + "\x08" + nul + nul + nul,
       kUnsupported},
      {"TIFF, big endian", "MM" + nul + "*" + nul + nul + nul + "\x08",
       kUnsupported},
      {"BMP", "BM" + std::string(60, '\0'), kUnsupported},
      {"RIFF that is a WAVE", "RIFF\x24\x08" + nul + nul + "WAVEfmt ",
       kUnsupported},
      {"half of a PNG signature", "\x89PNG", kUnsupported},
  };
  for (const BadInput& input : inputs) ExpectRefusedByHeader(input);
}

TEST(BadImageTest, NothingBehindTheMagicIsABrokenPicture) {
  const BadInput inputs[] = {
      {"JPEG start of image only", "\xFF\xD8", kFailed},
      {"JPEG", "\xFF\xD8\xFF", kFailed},
      {"JPEG, only fill bytes", "\xFF\xD8" + std::string(100, '\xFF'), kFailed},
      {"JPEG, segment past the end", "\xFF\xD8\xFF\xE0\xFF\xFFJFIF", kFailed},
      {"JPEG, segment of length 0", "\xFF\xD8\xFF\xE0" + std::string(20, '\0'),
       kFailed},
      {"JPEG, junk instead of a marker",
       std::string("\xFF\xD8\xFF\xE0\0\2abc", 9), kFailed},
      {"JPEG, end without a frame", "\xFF\xD8\xFF\xD9 more", kFailed},
      {"PNG", "\x89PNG\r\n\x1A\n", kFailed},
      {"PNG, another chunk first",
       "\x89PNG\r\n\x1A\n" + server::PngChunk("tEXt", std::string(13, 'x')),
       kFailed},
      {"WebP", "RIFF" + std::string(4, '\x20') + "WEBP", kFailed},
      {"WebP, junk chunk",
       "RIFF" + std::string(4, '\x20') + "WEBPjunk" + std::string(30, 'x'),
       kFailed},
  };
  for (const BadInput& input : inputs) ExpectRefusedByHeader(input);
}

TEST(BadImageTest, TruncatedPicturesAreNeverReturnedInPart) {
  const RgbImage picture = Noise(60, 45);
  const std::pair<std::string, std::string> pictures[] = {
      {"JPEG", server::EncodeJpeg(picture)},
      {"progressive JPEG", Progressive(picture)},
      {"PNG", server::EncodePng(picture)},
      {"lossy WebP", server::EncodeWebp(picture, false)},
      {"lossless WebP", server::EncodeWebp(picture, true)}};
  for (const auto& [name, bytes] : pictures) {
    ASSERT_TRUE(DecodeImage(bytes, ImageLimits(), true, 0).ok()) << name;
    for (int percent = 10; percent < 100; percent += 10) {
      ExpectRefused({absl::StrCat(percent, " % of a ", name),
                     bytes.substr(0, bytes.size() * percent / 100), kFailed});
    }
    ExpectRefused({absl::StrCat(name, " less one byte"),
                   bytes.substr(0, bytes.size() - 1), kFailed});
  }
}

TEST(BadImageTest, AJpegWhoseSizeIsWrongIsRefused) {
  const RgbImage picture = Noise(64, 64);
  for (const std::string& jpeg :
       {server::EncodeJpeg(picture), Progressive(picture)}) {
    for (int field : {kHeight, kWidth}) {
      const std::string name = field == kHeight ? "height" : "width";
      ExpectRefused({name + " too large",
                     PatchFrame(jpeg, field, std::string("\0\x80", 2)),
                     kFailed});
      ExpectRefused({name + " too small",
                     PatchFrame(jpeg, field, std::string("\0\x20", 2)),
                     kFailed});
      ExpectRefused({name + " zero",
                     PatchFrame(jpeg, field, std::string(2, '\0')), kFailed});
    }
  }
}

TEST(BadImageTest, UnsupportedKindsOfJpegAreNamed) {
  const std::string jpeg = server::EncodeJpeg(server::Gradient(16, 16));
  ExpectRefusedByHeader(
      {"12 bits", PatchFrame(jpeg, kPrecision, "\x0C"), kUnsupported});
  ExpectRefusedByHeader(
      {"7 bits", PatchFrame(jpeg, kPrecision, "\x07"), kUnsupported});
  ExpectRefusedByHeader(
      {"lossless", PatchFrame(jpeg, kMarker, "\xC3"), kUnsupported});
  const std::vector<uint8_t> pairs(2 * 16 * 16, 90);
  const std::string two = server::EncodeJpeg(
      16, 16, 2, pairs.data(), [](jpeg_compress_struct& compress) {
        compress.in_color_space = JCS_UNKNOWN;
        jpeg_set_colorspace(&compress, JCS_UNKNOWN);
      });
  ExpectRefusedByHeader({"two components", two, kUnsupported});
  ExpectRefusedByHeader({"a frame header that is longer than its components",
                         PatchFrame(jpeg, kComponents, "\x02"), kFailed});
}

TEST(BadImageTest, AJpegOfAThousandScansIsRefused) {
  // The first three scans contain the DC coefficients of the three components.
  // Each further scan adds one bit of one AC coefficient of one component. The
  // first scan of an AC coefficient also contains all higher bits.
  std::vector<jpeg_scan_info> scans;
  for (int component = 0; component < 3; ++component) {
    scans.push_back({1, {component}, 0, 0, 0, 0});
  }
  for (int component = 0; component < 3; ++component) {
    for (int k = 1; k < 64; ++k) {
      for (int bit = 5; bit >= 0; --bit) {
        scans.push_back({1, {component}, k, k, bit == 5 ? 0 : bit + 1, bit});
      }
    }
  }
  const RgbImage picture = server::Gradient(16, 16);
  const auto encode = [&](int count) {
    return server::EncodeJpeg(16, 16, 3, picture.data.data(),
                              [&](jpeg_compress_struct& compress) {
                                compress.scan_info = scans.data();
                                compress.num_scans = count;
                              });
  };
  EXPECT_TRUE(DecodeImage(encode(100), ImageLimits(), true, 0).ok());
  ExpectRefused({"101 scans", encode(101), kFailed});
  ExpectRefused({"1000 scans", encode(1000), kFailed});
}

// Each segment takes time, and the thread that reads headers must not be
// blocked.
TEST(BadImageTest, AJpegOfThousandsOfSegmentsIsRefused) {
  const std::string jpeg = server::EncodeJpeg(server::Gradient(16, 16));
  for (const absl::string_view segment :
       {absl::string_view("\xFF\xFE\0\2", 4), absl::string_view("\xFF\xD0"),
        absl::string_view("\xFF\xE0\0\2", 4),
        absl::string_view("\xFF\xE1\0\2", 4), absl::string_view("a\xFF\x01")}) {
    const auto with = [&](int count) {
      std::string segments;
      for (int i = 0; i < count; ++i) segments += std::string(segment);
      return server::Before(jpeg, "\xFF\xDB", segments);
    };
    EXPECT_TRUE(DecodeImage(with(1000), ImageLimits(), true, 0).ok());
    ExpectRefusedByHeader({"many segments", with(20'000), kFailed});
  }
}

TEST(BadImageTest, HugeSidesAreRefusedBeforeAnythingIsAllocated) {
  const int64_t before = PeakMemory();
  const std::string jpeg = server::EncodeJpeg(server::Gradient(16, 16));
  const std::string max16 = "\xFF\xFF";
  const BadInput inputs[] = {
      {"JPEG 65535 x 65535", PatchFrame(jpeg, kHeight, max16 + max16),
       kTooLarge},
      {"JPEG 1 x 65535",
       PatchFrame(jpeg, kHeight, max16 + std::string("\0\1", 2)), kTooLarge},
      {"JPEG 65535 x 1",
       PatchFrame(jpeg, kHeight, std::string("\0\1", 2) + max16), kTooLarge},
      {"PNG 65535 x 65535", PngHeader(65535, 65535), kTooLarge},
      {"PNG 1 x 65535", PngHeader(1, 65535), kTooLarge},
      {"PNG 2^31-1 x 2^31-1", PngHeader(INT32_MAX, INT32_MAX), kTooLarge},
      {"PNG 10000 x 10000", PngHeader(10000, 10000), kTooLarge},
      {"PNG 0 x 0", PngHeader(0, 0), kFailed},
      {"PNG 2^32-1 x 1", PngHeader(-1, 1), kFailed},
  };
  for (const BadInput& input : inputs) ExpectRefusedByHeader(input);
  EXPECT_LT(PeakMemory() - before, 16 << 20);
}

TEST(BadImageTest, TheLimitsAreInclusive) {
  const std::string png = server::EncodePng(server::Gradient(20, 10));
  ImageLimits limits;
  limits.max_bytes = png.size();
  limits.max_pixels = 200;
  limits.max_side = 20;
  EXPECT_TRUE(DecodeImage(png, limits, true, 0).ok());
  for (int64_t ImageLimits::*limit :
       {&ImageLimits::max_bytes, &ImageLimits::max_pixels}) {
    ImageLimits smaller = limits;
    --(smaller.*limit);
    EXPECT_EQ(DecodeImage(png, smaller, true, 0).status().code(), kTooLarge);
  }
  limits.max_side = 19;
  EXPECT_EQ(DecodeImage(png, limits, true, 0).status().code(), kTooLarge);
}

TEST(BadImageTest, AnimationsAreRefused) {
  const std::string png = server::EncodePng(server::Gradient(8, 8));
  ExpectRefusedByHeader(
      {"APNG",
       server::WithChunk(
           png, server::PngChunk("acTL", std::string("\0\0\0\2\0\0\0\0", 8))),
       kUnsupported});
  // The chunk VP8X has the animation flag (0x02) and sides of 8 pixels. The
  // chunk ANIM follows.
  const std::string webp =
      std::string("RIFF\x24\0\0\0WEBPVP8X\x0A\0\0\0\x02\0\0\0\7\0\0\7\0\0",
                  30) +
      std::string("ANIM\6\0\0\0\0\0\0\0\0\0", 14);
  ExpectRefusedByHeader({"animated WebP", webp, kUnsupported});
}

// strange_picture_test.cc tests wrong checksums of chunks that no pixel needs.
TEST(BadImageTest, AWrongChecksumOfWhatPixelsNeedIsAnError) {
  const RgbImage picture = Noise(20, 20);
  const std::string palette =
      server::EncodePng(8, 8, {/*color_type=*/3, 8}, std::string(64, '\1'));
  for (const auto& [chunk, good] :
       {std::pair("IHDR", server::EncodePng(picture)),
        std::pair("IDAT", server::EncodePng(picture)),
        std::pair("PLTE", palette)}) {
    ASSERT_TRUE(DecodeImage(good, ImageLimits(), true, 0).ok());
    ExpectRefused({absl::StrCat("CRC of ", chunk),
                   server::WithWrongCrc(good, chunk), kFailed});
  }
}

TEST(BadImageTest, CompressedPngRowsThatLackSomethingAreAnError) {
  const std::string header = PngHeader(20, 20);
  const std::string end = server::PngChunk("IEND", "");
  const std::string packed = Deflate(std::string(20 * 61, '\0'));
  const auto png = [&](const std::string& data) {
    return header + server::PngChunk("IDAT", data) + end;
  };
  ASSERT_TRUE(DecodeImage(png(packed), ImageLimits(), true, 0).ok());
  std::string bad_adler = packed;
  bad_adler.back() ^= 1;
  ExpectRefused({"Adler-32", png(bad_adler), kFailed});
  ExpectRefused(
      {"no Adler-32", png(packed.substr(0, packed.size() - 4)), kFailed});
  ExpectRefused(
      {"a row less", png(Deflate(std::string(19 * 61, '\0'))), kFailed});
  ExpectRefused({"no IDAT", header + end, kFailed});
}

TEST(BadImageTest, UnknownCriticalPngChunksAreAnError) {
  ExpectRefused({"a chunk that pixels may need",
                 server::WithChunk(server::EncodePng(Noise(8, 8)),
                                   server::PngChunk("ABCD", "x")),
                 kFailed});
}

TEST(BadImageTest, APngThatUnpacksToMuchCostsLittle) {
  const int64_t before = PeakMemory();
  const std::string end = server::PngChunk("IEND", "");
  const std::string packed = Deflate(std::string(7'900'000, '\0'));

  const std::string pixels =
      PngHeader(100, 100) + server::PngChunk("IDAT", packed) + end;
  EXPECT_TRUE(DecodeImage(pixels, ImageLimits(), true, 0).ok());

  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += server::PngChunk("zTXt", std::string("a\0\0", 3) + packed);
  }
  const absl::StatusOr<RgbImage> image = DecodeImage(
      server::WithChunk(server::EncodePng(server::Gradient(8, 8)), text),
      ImageLimits(), true, 0);
  EXPECT_TRUE(image.ok()) << "skipped: " << image.status();
  EXPECT_LT(PeakMemory() - before, 64 << 20) << "of 7.9 GB unpacked";
}

TEST(BadImageTest, TheErrorNamesNoFileAndIsShort) {
  const absl::Status status =
      DecodeImage(server::EncodeJpeg(Noise(30, 30)).substr(0, 700),
                  ImageLimits(), true, 0)
          .status();
  EXPECT_EQ(status.message().find('/'), absl::string_view::npos) << status;
  EXPECT_LT(status.message().size(), 200);
}

// A damaged picture must be decoded completely or be refused with a known
// error.
TEST(BadImageTest, DamagedPicturesAreDecodedWhollyOrRefused) {
  const RgbImage picture = Noise(24, 24);
  const std::string pictures[] = {
      server::EncodeJpeg(picture),
      Progressive(picture),
      server::EncodePng(picture),
      server::EncodeWebp(picture, false),
      server::EncodeWebp(picture, true),
      server::WithExif(server::EncodeJpeg(picture),
                       server::ExifOrientation(6, true))};
  ImageLimits limits;
  limits.max_pixels = 1 << 20;
  std::mt19937 random(7);
  int refused = 0;
  for (const std::string& good : pictures) {
    for (int i = 0; i < 600; ++i) {
      std::string bytes = good;
      // Half of the cases change the first bytes, where most errors can occur.
      const size_t reach =
          i % 2 == 0 ? std::min<size_t>(600, bytes.size()) : bytes.size();
      for (int flips = random() % 3; flips >= 0; --flips) {
        bytes[random() % reach] = random();
      }
      const absl::StatusOr<RgbImage> image =
          DecodeImage(bytes, limits, true, i % 3 == 0 ? 8 : 0);
      if (image.ok()) {
        EXPECT_EQ(image->data.size(), 3 * image->width * image->height);
        continue;
      }
      ++refused;
      const absl::StatusCode code = image.status().code();
      EXPECT_TRUE(code == kUnsupported || code == kFailed || code == kTooLarge)
          << image.status();
    }
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace sfmamba::base
