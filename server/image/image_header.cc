// ReadImageHeader of image.h: what can be known of an encoded picture without
// decoding it. Every length read from the bytes is checked against what is
// left.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/reasons.h"
#include "server/image/image.h"
#include "webp/decode.h"

namespace sfmamba::image {
namespace {

constexpr absl::string_view kJpegMagic = "\xFF\xD8\xFF";
constexpr absl::string_view kPngMagic = "\x89PNG\r\n\x1A\n";
constexpr absl::string_view kExifMagic("Exif\0\0", 6);
constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kTiffShort = 3;

// An unsigned integer of `size` bytes at `offset`, which must lie inside.
uint32_t BigEndian(absl::string_view bytes, size_t offset, int size) {
  uint32_t value = 0;
  for (int i = 0; i < size; ++i) {
    value = value << 8 | static_cast<uint8_t>(bytes[offset + i]);
  }
  return value;
}

uint32_t LittleEndian(absl::string_view bytes, size_t offset, int size) {
  uint32_t value = 0;
  for (int i = size - 1; i >= 0; --i) {
    value = value << 8 | static_cast<uint8_t>(bytes[offset + i]);
  }
  return value;
}

// The orientation in a TIFF structure; 1 if there is none or it is corrupt.
// Source: TIFF 6.0, section 2; EXIF 2.3, section 4.6.
int TiffOrientation(absl::string_view tiff) {
  if (tiff.size() < 8) return 1;
  const bool little = absl::StartsWith(tiff, "II");
  if (!little && !absl::StartsWith(tiff, "MM")) return 1;
  const auto read = little ? LittleEndian : BigEndian;
  const uint64_t directory = read(tiff, 4, 4);
  if (read(tiff, 2, 2) != 42 || directory + 2 > tiff.size()) return 1;
  const int entries = read(tiff, directory, 2);
  for (int i = 0; i < entries; ++i) {
    const uint64_t entry = directory + 2 + 12 * i;
    if (entry + 12 > tiff.size()) return 1;
    if (read(tiff, entry, 2) != kOrientationTag) continue;
    const uint32_t value = read(tiff, entry + 8, 2);
    const bool valid = read(tiff, entry + 2, 2) == kTiffShort &&
                       read(tiff, entry + 4, 4) == 1 && value >= 1 &&
                       value <= 8;
    return valid ? value : 1;
  }
  return 1;
}

// Fills in width and height from a frame header (SOF): length (2 bytes),
// precision (1), height (2), width (2), components (1). Source: ITU-T T.81,
// B.2.2.
absl::Status ReadFrame(int marker, absl::string_view segment,
                       ImageHeader& header) {
  // Baseline, extended, progressive, and the last two with arithmetic coding.
  constexpr int kDecodable[] = {0xC0, 0xC1, 0xC2, 0xC9, 0xCA};
  if (std::find(std::begin(kDecodable), std::end(kDecodable), marker) ==
      std::end(kDecodable)) {
    return server::ImageFormatUnsupported(
        absl::StrCat("JPEG: frame type SOF", marker - 0xC0,
                     " (lossless or hierarchical) is not supported"));
  }
  if (segment.size() < 8)
    return server::ImageDecodeFailed("JPEG: the frame header is too short");
  const int precision = BigEndian(segment, 2, 1);
  const int components = BigEndian(segment, 7, 1);
  if (precision != 8) {
    return server::ImageFormatUnsupported(
        absl::StrCat("JPEG: ", precision, " bits a sample, expected 8"));
  }
  if (components != 1 && components != 3 && components != 4) {
    return server::ImageFormatUnsupported(
        absl::StrCat("JPEG: ", components, " components, expected 1, 3 or 4"));
  }
  header.height = BigEndian(segment, 3, 2);
  header.width = BigEndian(segment, 5, 2);
  return absl::OkStatus();
}

bool IsFrame(int marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 &&
         marker != 0xCC;
}

// Walks the marker segments up to the frame header. EXIF comes before it.
absl::Status ReadJpegHeader(absl::string_view bytes, ImageHeader& header) {
  size_t at = 2;
  while (at < bytes.size()) {
    if (BigEndian(bytes, at, 1) != 0xFF) {
      return server::ImageDecodeFailed("JPEG: no marker where one is expected");
    }
    while (at < bytes.size() && BigEndian(bytes, at, 1) == 0xFF) ++at;
    if (at + 3 > bytes.size()) break;
    const int marker = BigEndian(bytes, at++, 1);
    const size_t length = BigEndian(bytes, at, 2);
    if (length < 2 || length > bytes.size() - at) break;
    const absl::string_view segment = bytes.substr(at, length);
    if (IsFrame(marker)) return ReadFrame(marker, segment, header);
    if (marker == 0xDA || marker == 0xD9) {
      return server::ImageDecodeFailed(
          "JPEG: no frame header before the first scan");
    }
    const absl::string_view payload = segment.substr(2);
    if (marker == 0xE1 && absl::StartsWith(payload, kExifMagic)) {
      header.orientation = TiffOrientation(payload.substr(kExifMagic.size()));
    }
    at += length;
  }
  return server::ImageDecodeFailed("JPEG: it ends before its frame header");
}

// Source: PNG specification (third edition), 5.3 and 11.2.
absl::Status ReadPngHeader(absl::string_view bytes, ImageHeader& header) {
  constexpr size_t kFrame = 12;  // Of a chunk: length, type, CRC.
  if (bytes.size() < 33 || BigEndian(bytes, 8, 4) != 13 ||
      bytes.substr(12, 4) != "IHDR") {
    return server::ImageDecodeFailed("PNG: no complete IHDR");
  }
  const uint32_t width = BigEndian(bytes, 16, 4);
  const uint32_t height = BigEndian(bytes, 20, 4);
  if (width > INT32_MAX || height > INT32_MAX) {
    return server::ImageDecodeFailed("PNG: a side exceeds 2^31 - 1");
  }
  header.width = width;
  header.height = height;
  for (size_t at = 8; bytes.size() - at >= kFrame;) {
    const uint64_t length = BigEndian(bytes, at, 4);
    if (length > bytes.size() - at - kFrame) break;
    const absl::string_view type = bytes.substr(at + 4, 4);
    if (type == "acTL") return server::ImageFormatUnsupported("PNG: animated");
    if (type == "eXIf") {
      header.orientation = TiffOrientation(bytes.substr(at + 8, length));
    }
    at += length + kFrame;
  }
  return absl::OkStatus();
}

// Source: WebP container specification.
absl::Status ReadWebpHeader(absl::string_view bytes, ImageHeader& header) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(reinterpret_cast<const uint8_t*>(bytes.data()),
                      bytes.size(), &features) != VP8_STATUS_OK) {
    return server::ImageDecodeFailed("WebP: the header is broken");
  }
  if (features.has_animation)
    return server::ImageFormatUnsupported("WebP: animated");
  header.width = features.width;
  header.height = features.height;
  for (size_t at = 12; bytes.size() - at >= 8;) {
    const uint64_t length = LittleEndian(bytes, at + 4, 4);
    if (length > bytes.size() - at - 8) break;
    if (bytes.substr(at, 4) == "EXIF") {
      absl::string_view payload = bytes.substr(at + 8, length);
      if (absl::StartsWith(payload, kExifMagic)) {
        payload.remove_prefix(kExifMagic.size());
      }
      header.orientation = TiffOrientation(payload);
    }
    at += 8 + std::min<uint64_t>(length + length % 2, bytes.size() - at - 8);
  }
  return absl::OkStatus();
}

absl::Status CheckSize(const ImageHeader& header, const ImageLimits& limits) {
  if (header.width <= 0 || header.height <= 0) {
    return server::ImageDecodeFailed(
        absl::StrCat("the picture is empty: ", header.width, " x ",
                     header.height, " pixels"));
  }
  if (std::max(header.width, header.height) > limits.max_side ||
      int64_t{header.width} * header.height > limits.max_pixels) {
    return server::ImageTooLarge(absl::StrCat(
        header.width, " x ", header.height, " pixels, expected at most ",
        limits.max_pixels, " and sides of at most ", limits.max_side));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImageHeader> ReadImageHeader(absl::string_view bytes,
                                            const ImageLimits& limits) {
  if (bytes.size() > limits.max_bytes) {
    return server::ImageTooLarge(absl::StrCat(
        bytes.size(), " bytes, expected at most ", limits.max_bytes));
  }
  ImageHeader header;
  absl::Status status;
  if (absl::StartsWith(bytes, kJpegMagic)) {
    header.format = ImageFormat::kJpeg;
    status = ReadJpegHeader(bytes, header);
  } else if (absl::StartsWith(bytes, kPngMagic)) {
    header.format = ImageFormat::kPng;
    status = ReadPngHeader(bytes, header);
  } else if (absl::StartsWith(bytes, "RIFF") && bytes.size() >= 12 &&
             bytes.substr(8, 4) == "WEBP") {
    header.format = ImageFormat::kWebp;
    status = ReadWebpHeader(bytes, header);
  } else {
    return server::ImageFormatUnsupported(
        absl::StrCat("the first of ", bytes.size(),
                     " bytes are not those of a JPEG, PNG or WebP picture"));
  }
  if (status.ok()) status = CheckSize(header, limits);
  if (!status.ok()) return status;
  return header;
}

}  // namespace sfmamba::image
