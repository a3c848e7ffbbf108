// Tests pictures that have a small fault but that other programs accept, as
// public bug reports describe. Each must give the same pixels as the picture
// without the fault.

#include <cstdint>
#include <cstdio>  // jpeglib.h needs FILE and size_t.
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/image_decoder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jpeglib.h"
#include "tests/server/picture.h"

namespace sfmamba::base {
namespace {

using server::Before;
using server::PngChunk;
using server::WithChunk;
using server::WithWrongCrc;

constexpr absl::string_view kTables = "\xFF\xDB", kFrame = "\xFF\xC0",
                            kScan = "\xFF\xDA", kEnd = "\xFF\xD9";
constexpr absl::string_view kPalette("\0\0\0\xFF\xFF\xFF", 6);

// Returns the bytes of a literal, which may contain zeros.
template <size_t size>
constexpr absl::string_view Bytes(const char (&text)[size]) {
  return absl::string_view(text, size - 1);
}

RgbImage Decode(absl::string_view bytes, int min_side = 0) {
  absl::StatusOr<RgbImage> image =
      DecodeImage(bytes, ImageLimits(), /*apply_orientation=*/true, min_side);
  EXPECT_TRUE(image.ok()) << image.status();
  return image.ok() ? *std::move(image) : RgbImage();
}

void ExpectSame(const std::string& strange, const std::string& clean,
                const std::string& name) {
  for (const int min_side : {0, 8}) {
    const RgbImage seen = Decode(strange, min_side);
    const RgbImage expected = Decode(clean, min_side);
    EXPECT_EQ(seen.width, expected.width) << name;
    EXPECT_EQ(seen.data, expected.data) << name;
  }
}

void ExpectRefused(const std::string& bytes, const std::string& name) {
  EXPECT_EQ(DecodeImage(bytes, ImageLimits(), true, 0).status().code(),
            absl::StatusCode::kInvalidArgument)
      << name;
}

RgbImage Picture() { return server::Gradient(61, 45); }

std::string Progressive() {
  const RgbImage picture = Picture();
  return server::EncodeJpeg(
      picture.width, picture.height, 3, picture.data.data(),
      [](jpeg_compress_struct& c) { jpeg_simple_progression(&c); });
}

std::string Restarts() {
  const RgbImage picture = Picture();
  return server::EncodeJpeg(
      picture.width, picture.height, 3, picture.data.data(),
      [](jpeg_compress_struct& c) { c.restart_in_rows = 1; });
}

std::string Exif(int orientation) {
  return server::App1(server::ExifOrientation(orientation, true));
}

// ---- JPEG ----

TEST(StrangeJpegTest, WhatStandsBetweenSegmentsIsSkipped) {
  const std::string clean = server::EncodeJpeg(Picture());
  const std::pair<const char*, absl::string_view> strays[] = {
      {"a byte", "\x7F"},
      {"text", "AVI1 and so on"},
      {"FF00", Bytes("\xFF\0")},
      {"RST0", "\xFF\xD0"},
      {"RST7, RST1", "\xFF\xD7\xFF\xD1"},
      {"TEM", "\xFF\x01"},
      {"fill bytes", "\xFF\xFF\xFF"},
      {"a comment of length 0", Bytes("\xFF\xFE\0\0")},
      {"a comment of length 1", Bytes("\xFF\xFE\0\1")},
      {"a segment that ends before its data", Bytes("\xFF\xE0\0\4JFIF\0\1\1")},
      {"APP1 of length 0", Bytes("\xFF\xE1\0\0")},
  };
  for (const auto& [name, stray] : strays) {
    for (const absl::string_view marker : {kTables, kFrame, kScan}) {
      ExpectSame(Before(clean, marker, stray), clean, name);
    }
    ExpectSame(clean.substr(0, 2) + std::string(stray) + clean.substr(2), clean,
               name);
    ExpectSame(Before(Progressive(), kTables, stray), clean, name);
  }
}

TEST(StrangeJpegTest, JunkBeforeTheEndIsSkipped) {
  for (const std::string& clean :
       {server::EncodeJpeg(Picture()), Progressive(), Restarts()}) {
    const std::string rows = clean.substr(0, clean.size() - kEnd.size());
    for (const int count : {1, 4, 5, 12, 100, 1000}) {
      for (const char byte : {'\0', 'A', '\x7F'}) {
        ExpectSame(absl::StrCat(rows, std::string(count, byte), kEnd), clean,
                   absl::StrCat(count, " bytes"));
      }
    }
    ExpectRefused(rows, "no end");
    ExpectRefused(rows + "AAAAAAAA", "junk and no end");
    ExpectRefused(absl::StrCat(rows.substr(0, rows.size() / 2), "AAAA", kEnd),
                  "rows missing");
  }
}

TEST(StrangeJpegTest, JunkThatLooksLikeMarkersIsSkipped) {
  const std::string clean = server::EncodeJpeg(Picture());
  for (const absl::string_view junk :
       {Bytes("\xFF\0ab"), Bytes("\xFF\x02\xFF\xC4\0\1"), Bytes("\xFF\xD3"),
        Bytes("ab\xFF\xDA\0\0")}) {
    ExpectSame(Before(clean, kEnd, junk), clean, std::string(junk));
  }
}

TEST(StrangeJpegTest, JunkBeforeARestartIsSkipped) {
  const std::string clean = Restarts();
  ExpectSame(Before(clean, "\xFF\xD1", "AAAAAA"), clean, "before RST1");
}

TEST(StrangeJpegTest, AsMuchAsFurtherRowsIsNoJunk) {
  std::mt19937 random(1);
  RgbImage noise;
  noise.width = noise.height = 64;
  for (int i = 0; i < 3 * 64 * 64; ++i) noise.data.push_back(random());
  std::string jpeg = server::EncodeJpeg(noise);
  // The low byte of the height.
  jpeg[jpeg.find(kFrame.data()) + 6] = 32;
  ExpectRefused(jpeg, "half of the rows are not counted");
}

// ---- EXIF ----

TEST(StrangeExifTest, OfSeveralBlocksTheFirstDecides) {
  const std::string jpeg = server::EncodeJpeg(Picture());
  const std::string turned = Before(jpeg, kTables, Exif(6));
  const std::string empty = server::App1(Bytes("Exif\0\0"));
  const std::string no_entries =
      server::App1(Bytes("Exif\0\0II*\0\x08\0\0\0\0\0"));
  const struct {
    const char* name;
    std::string blocks;
    int orientation;
  } cases[] = {
      {"6, 1", Exif(6) + Exif(1), 6},
      {"1, 6", Exif(1) + Exif(6), 1},
      {"6, 3", Exif(6) + Exif(3), 6},
      {"6, nothing", Exif(6) + empty, 6},
      {"nothing, 6", empty + Exif(6), 6},
      {"one without orientation, 6", no_entries + Exif(6), 1},
      {"XMP, 6",
       server::App1(Bytes("http://ns.adobe.com/xap/1.0/\0<x/>")) + Exif(6), 6},
  };
  for (const auto& c : cases) {
    const std::string bytes = Before(jpeg, kTables, c.blocks);
    EXPECT_EQ(ReadImageHeader(bytes, ImageLimits())->orientation, c.orientation)
        << c.name;
    ExpectSame(bytes, c.orientation == 6 ? turned : jpeg, c.name);
  }
}

TEST(StrangeExifTest, ABlockBehindTheFrameHeaderIsRead) {
  const std::string jpeg = server::EncodeJpeg(Picture());
  const std::string turned = Before(jpeg, kTables, Exif(6));
  ExpectSame(Before(jpeg, kScan, Exif(6)), turned, "before the scan");
  ExpectSame(Before(jpeg, kEnd, Exif(6)), jpeg, "behind the scan");
  ExpectSame(Before(turned, kScan, Exif(1)), turned, "a second one");
}

TEST(StrangeExifTest, TheFirstBlockOfAWebpAndOfAPngDecides) {
  const std::string six = server::ExifOrientation(6, true).substr(6);
  const std::string one = server::ExifOrientation(1, true).substr(6);
  const auto size = [](uint32_t n) {
    return std::string({static_cast<char>(n), static_cast<char>(n >> 8), 0, 0});
  };
  const std::string image =
      server::EncodeWebp(server::Gradient(6, 4), true).substr(12);
  const std::string blocks = absl::StrCat("EXIF", size(six.size()), six, "EXIF",
                                          size(one.size()), one);
  const auto webp = [&](absl::string_view flags) {
    const std::string extended =
        flags.empty() ? ""
                      : absl::StrCat("VP8X", size(10), flags,
                                     Bytes("\0\0\0\5\0\0\3\0\0"));
    const std::string chunks = absl::StrCat("WEBP", extended, image, blocks);
    return absl::StrCat("RIFF", size(chunks.size()), chunks);
  };
  const auto orientation = [](const std::string& file) {
    return ReadImageHeader(file, ImageLimits())->orientation;
  };
  EXPECT_EQ(orientation(webp("\x08")), 6);
  EXPECT_EQ(orientation(webp(Bytes("\0"))), 1) << "which no flag announces";
  EXPECT_EQ(orientation(webp("")), 1) << "behind a simple file's picture";

  const std::string png = server::EncodePng(Picture());
  const auto with = [&](const std::string& first, const std::string& second) {
    return WithChunk(WithChunk(png, PngChunk("eXIf", second)),
                     PngChunk("eXIf", first));
  };
  EXPECT_EQ(ReadImageHeader(with(six, one), ImageLimits())->orientation, 6);
  EXPECT_EQ(ReadImageHeader(with(one, six), ImageLimits())->orientation, 1);
  EXPECT_EQ(ReadImageHeader(WithWrongCrc(with(six, six), "eXIf"), ImageLimits())
                ->orientation,
            6)
      << "the second";
  EXPECT_EQ(ReadImageHeader(
                WithWrongCrc(WithChunk(png, PngChunk("eXIf", six)), "eXIf"),
                ImageLimits())
                ->orientation,
            1)
      << "whose checksum is wrong";
}

// ---- PNG ----

std::string BeforeChunk(std::string png, const std::string& type,
                        const std::string& chunk) {
  return png.insert(png.find(type) - 4, chunk);
}

TEST(StrangePngTest, ChunksThatNoPixelNeedsAreSkipped) {
  const std::string rgb = server::EncodePng(Picture());
  const std::string grey =
      server::EncodePng(8, 8, {/*color_type=*/0, 8}, std::string(64, '\x5A'));
  const std::string alpha =
      server::EncodePng(8, 8, {/*color_type=*/6, 8}, std::string(256, '\x5A'));
  const std::string palette =
      server::EncodePng(8, 8, {/*color_type=*/3, 8}, std::string(64, '\2'));
  const std::string clear = PngChunk("tRNS", Bytes("\1\2\3\4\5\6"));
  const std::string text = PngChunk("tEXt", Bytes("Title\0chair"));
  const std::string profile = PngChunk("iCCP", "no profile at all");
  const std::string suggested = PngChunk("PLTE", kPalette);
  const struct {
    const char* name;
    std::string strange, clean;
  } cases[] = {
      {"PLTE in grey", WithChunk(grey, suggested), grey},
      {"PLTE of 2 1/3 colours", WithChunk(rgb, PngChunk("PLTE", "1234567")),
       rgb},
      {"PLTE behind the pixels", BeforeChunk(rgb, "IEND", suggested), rgb},
      {"PLTE in RGB with a wrong CRC",
       WithWrongCrc(WithChunk(rgb, suggested), "PLTE"), rgb},
      {"tRNS with alpha", WithChunk(alpha, clear), alpha},
      {"tRNS longer than the palette", BeforeChunk(palette, "IDAT", clear),
       palette},
      {"tRNS without data", BeforeChunk(palette, "IDAT", PngChunk("tRNS", "")),
       palette},
      {"tRNS before PLTE", WithChunk(palette, clear), palette},
      {"tRNS behind the pixels", BeforeChunk(palette, "IEND", clear), palette},
      {"tRNS twice", WithChunk(rgb, clear + clear), rgb},
      {"CRC of tEXt", WithWrongCrc(WithChunk(rgb, text), "tEXt"), rgb},
      {"CRC of iCCP", WithWrongCrc(WithChunk(rgb, profile), "iCCP"), rgb},
      {"CRC of IEND", WithWrongCrc(rgb, "IEND"), rgb},
      {"IEND with data", BeforeChunk(rgb, "IEND", PngChunk("IEND", "x")), rgb},
      {"IDAT behind the pixels",
       BeforeChunk(rgb, "IEND", PngChunk("IDAT", "x")), rgb},
      {"IDAT behind text behind the pixels",
       BeforeChunk(rgb, "IEND", text + PngChunk("IDAT", "more")), rgb},
      {"IDAT without data", WithChunk(rgb, PngChunk("IDAT", "")), rgb},
      {"acTL behind the pixels",
       BeforeChunk(rgb, "IEND", PngChunk("acTL", Bytes("\0\0\0\2\0\0\0\0"))),
       rgb},
      {"gAMA twice",
       WithChunk(rgb, PngChunk("gAMA", Bytes("\0\0\xB1\x8F")) +
                          PngChunk("gAMA", Bytes("\0\0\xB1\x8F"))),
       rgb},
  };
  for (const auto& c : cases) ExpectSame(c.strange, c.clean, c.name);
}

// Returns the data of the PNG's only IDAT chunk.
std::string Idat(const std::string& png) {
  const size_t at = png.find("IDAT");
  return png.substr(at + 4, png.find("IEND") - 8 - (at + 4));
}

TEST(StrangePngTest, DataBehindTheCompressedRowsIsSkipped) {
  const std::string png = server::EncodePng(Picture());
  const std::string header = png.substr(0, 33), data = Idat(png);
  const std::string end = PngChunk("IEND", ""), text = PngChunk("tEXt", "a");
  ExpectSame(header + PngChunk("IDAT", data + "more") + end, png,
             "in the same chunk");
  ExpectSame(header + PngChunk("IDAT", data.substr(0, 40)) + text +
                 PngChunk("IDAT", data.substr(40)) + end,
             png, "a chunk between the parts");
  const std::string extra =
      WithWrongCrc(header + PngChunk("IDAT", data + "more") + end, "IDAT");
  ExpectRefused(extra, "with a wrong CRC");
}

TEST(StrangePngTest, RowsBeyondTheHeightAreSkipped) {
  const std::string end = PngChunk("IEND", "");
  for (const int more : {1, 45}) {
    const RgbImage taller = server::Gradient(61, 45 + more);
    const std::string clean =
        server::EncodePng(server::Crop(taller, {0, 0, 61, 45}));
    const std::string header = clean.substr(0, 33);
    const std::string data = Idat(server::EncodePng(taller));
    ExpectSame(header + PngChunk("IDAT", data) + end, clean,
               absl::StrCat(more, " rows"));
    ExpectSame(
        header + PngChunk("IDAT", data + "a") + PngChunk("IDAT", "b") + end,
        clean, absl::StrCat(more, " rows and what follows them"));
    ExpectRefused(
        header + PngChunk("IDAT", data.substr(0, data.size() - 9)) + end,
        "rows beyond the height without an end");
  }
}

TEST(StrangePngTest, ColoursThatThePaletteLacksAreBlack) {
  const auto png = [](char index) {
    const std::string own =
        server::EncodePng(8, 8, {/*color_type=*/3, 8}, std::string(64, index));
    return own.substr(0, 33) + PngChunk("PLTE", kPalette) +
           PngChunk("IDAT", Idat(own)) + PngChunk("IEND", "");
  };
  ExpectSame(png('\2'), png('\0'), "the third of two colours");
}

}  // namespace
}  // namespace sfmamba::base
