// Compares the predicted memory of decoders with the memory that they allocate.

#include "base/decoder_memory.h"

#include <cstdint>
#include <cstdio>  // jpeglib.h needs FILE and size_t.
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/image_decoder.h"
#include "gtest/gtest.h"
#include "jpeglib.h"
#include "tests/server/picture.h"
#include "tests/testing/allocations.h"

namespace sfmamba::base {
namespace {

// If a decoder allocates fewer bytes than this, the prediction may be much too
// high. The decoder's tables then take more memory than the picture.
constexpr int64_t kTightFrom = 1 << 20;

struct Size {
  int width, height;
};
constexpr Size kSizes[] = {{1, 1},       {7, 5},      {17, 9},     {33, 1025},
                           {224, 224},   {2051, 517}, {501, 2003}, {16384, 3},
                           {16383, 129}, {5, 16384}};

// Decodes the picture. The predicted memory must be at least the memory that
// the decoder allocates. If `tight` is true and the decoder allocates at least
// kTightFrom bytes, the predicted memory must also be at most 1.5 times the
// allocated memory.
void ExpectForeseen(const std::string& bytes, bool tight = true,
                    int min_side = 0) {
  const ImageLimits limits;
  const absl::StatusOr<ImageHeader> header = ReadImageHeader(bytes, limits);
  ASSERT_TRUE(header.ok()) << header.status();
  SCOPED_TRACE(absl::StrCat(header->width, " x ", header->height));
  const DecodeNeeds needs = NeedsOf(*header, true, min_side);
  RgbImage image;
  const int64_t peak = PeakOfHeap([&] {
    const absl::Status status = [&] {
      auto decoded = DecodeImage(bytes, limits, true, min_side);
      if (decoded.ok()) image = *std::move(decoded);
      return decoded.status();
    }();
    ASSERT_TRUE(status.ok()) << status;
  });
  EXPECT_EQ(needs.width, image.width);
  EXPECT_EQ(needs.height, image.height);
  EXPECT_GE(needs.bytes, peak);
  if (tight && peak >= kTightFrom) {
    EXPECT_LE(needs.bytes, peak / 2 * 3);
  }
}

// Checks JPEGs of all sizes with `components` components.
void ExpectJpegForeseen(
    int components, const std::function<void(jpeg_compress_struct&)>& adjust,
    int min_side = 0) {
  for (const Size& size : kSizes) {
    const std::vector<uint8_t> pixels(
        size_t{1} * components * size.width * size.height, 77);
    ExpectForeseen(server::EncodeJpeg(size.width, size.height, components,
                                      pixels.data(), adjust),
                   true, min_side);
  }
}

void SetSampling(jpeg_compress_struct& compress, int component, int across,
                 int down) {
  compress.comp_info[component].h_samp_factor = across;
  compress.comp_info[component].v_samp_factor = down;
}

void Progressive(jpeg_compress_struct& compress) {
  jpeg_simple_progression(&compress);
}

// Makes the encoder write each component in a separate scan.
void EachInItsScan(jpeg_compress_struct& compress) {
  static jpeg_scan_info scans[4];
  for (int i = 0; i < compress.num_components; ++i) {
    scans[i] = {1, {i}, 0, 63, 0, 0};
  }
  compress.scan_info = scans;
  compress.num_scans = compress.num_components;
}

TEST(DecoderMemoryTest, BaselineJpegsTakeSomeRows) {
  ExpectJpegForeseen(1, {});
  // The encoder's default sampling is 4:2:0. The three calls after the next one
  // set other samplings.
  ExpectJpegForeseen(3, {});
  ExpectJpegForeseen(3,
                     [](jpeg_compress_struct& c) { SetSampling(c, 0, 1, 1); });
  ExpectJpegForeseen(3,
                     [](jpeg_compress_struct& c) { SetSampling(c, 0, 2, 1); });
  ExpectJpegForeseen(3,
                     [](jpeg_compress_struct& c) { SetSampling(c, 0, 1, 4); });
  ExpectJpegForeseen(4, {});
}

TEST(DecoderMemoryTest, ProgressiveJpegsTakeTheirCoefficients) {
  ExpectJpegForeseen(1, Progressive);
  ExpectJpegForeseen(3, Progressive);
  ExpectJpegForeseen(3, [](jpeg_compress_struct& c) {
    SetSampling(c, 0, 1, 1);
    jpeg_simple_progression(&c);
  });
  // The colour components have a higher resolution than the brightness.
  ExpectJpegForeseen(3, [](jpeg_compress_struct& c) {
    SetSampling(c, 0, 1, 1);
    SetSampling(c, 1, 2, 2);
    SetSampling(c, 2, 2, 2);
    jpeg_simple_progression(&c);
  });
  ExpectJpegForeseen(4, Progressive);
}

TEST(DecoderMemoryTest, JpegsOfSeveralScansTakeTheirCoefficients) {
  ExpectJpegForeseen(3, EachInItsScan);
  ExpectJpegForeseen(4, EachInItsScan);
}

TEST(DecoderMemoryTest, ScalingDownSavesPixelsNotCoefficients) {
  ExpectJpegForeseen(3, {}, 64);
  ExpectJpegForeseen(3, Progressive, 64);
}

TEST(DecoderMemoryTest, ArithmeticCodingTakesNoMore) {
  ExpectJpegForeseen(3, [](jpeg_compress_struct& c) { c.arith_code = TRUE; });
}

TEST(DecoderMemoryTest, ATurnedPictureIsThereTwice) {
  const std::string jpeg = server::EncodeJpeg(server::Gradient(1200, 901));
  ExpectForeseen(server::WithExif(jpeg, server::ExifOrientation(6, true)));
  ExpectForeseen(server::WithExif(jpeg, server::ExifOrientation(3, true)));
}

TEST(DecoderMemoryTest, PngsTakeTwoRows) {
  struct Kind {
    int color_type, bit_depth, bits;
  };
  for (const Kind& kind : {Kind{0, 8, 8}, Kind{2, 8, 24}, Kind{3, 2, 2},
                           Kind{4, 8, 16}, Kind{6, 16, 64}}) {
    for (const bool interlaced : {false, true}) {
      for (const Size& size : kSizes) {
        const size_t row = (size_t{1} * kind.bits * size.width + 7) / 8;
        ExpectForeseen(
            server::EncodePng(size.width, size.height,
                              {kind.color_type, kind.bit_depth, interlaced},
                              std::string(row * size.height, '\x55')));
      }
    }
  }
}

TEST(DecoderMemoryTest, LossyWebpsTakeSomeRows) {
  for (const Size& size : kSizes) {
    // WebP does not support longer sides.
    if (size.width > 16383 || size.height > 16383) continue;
    ExpectForeseen(
        server::EncodeWebp(server::Gradient(size.width, size.height), false));
  }
}

TEST(DecoderMemoryTest, LosslessWebpsTakeFourBytesAPixel) {
  for (const Size& size : kSizes) {
    if (size.width > 16383 || size.height > 16383) continue;
    ExpectForeseen(
        server::EncodeWebp(server::Gradient(size.width, size.height), true));
  }
}

TEST(DecoderMemoryTest, AnAlphaChannelIsDecodedToo) {
  for (const int noise : {0, 255}) {
    for (const Size& size : {Size{17, 9}, Size{1201, 901}}) {
      ExpectForeseen(
          server::EncodeWebpWithAlpha(size.width, size.height, noise),
          /*tight=*/false);
    }
  }
}

TEST(DecoderMemoryTest, StrayBytesAreNoFurtherScan) {
  const std::string jpeg = server::EncodeJpeg(server::Gradient(640, 480));
  const ImageLimits limits;
  const std::string stray = server::Before(jpeg, "\xFF\xDA", "x");
  EXPECT_EQ(ReadImageHeader(stray, limits)->decoder_bytes,
            ReadImageHeader(jpeg, limits)->decoder_bytes);
  ExpectForeseen(stray);
}

TEST(DecoderMemoryTest, AHeaderIsReadInLittleMemory) {
  // The header contains many EXIF blocks and repeats its tables.
  const std::string jpeg = server::EncodeJpeg(server::Gradient(64, 48));
  const size_t table = jpeg.find("\xFF\xC4");
  const std::string tables = jpeg.substr(table, jpeg.find("\xFF\xDA") - table);
  std::string header;
  for (int i = 0; i < 200; ++i) {
    header += tables + server::App1("Exif" + std::string(60'000, '\0'));
  }
  const std::string large = server::Before(jpeg, "\xFF\xDB", header);
  const int64_t peak = PeakOfHeap(
      [&] { ASSERT_TRUE(ReadImageHeader(large, ImageLimits()).ok()); });
  EXPECT_LE(peak, 64 << 10);
}

}  // namespace
}  // namespace sfmamba::base
