// Reads the headers of untrusted files. A length in a file may be wrong. Before
// a length is used, it is compared with the number of remaining bytes.
#include "base/image_header.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/decoder_memory.h"
#include "base/image_format.h"
#include "base/jpeg_decoder.h"
#include "base/orientation.h"
#include "webp/decode.h"
#include "zlib.h"

namespace sfmamba::base {
namespace {

absl::Status Unsupported(absl::string_view message) {
  return absl::UnimplementedError(message);
}

absl::Status Broken(absl::string_view message) {
  return absl::InvalidArgumentError(message);
}

absl::Status ReadJpeg(absl::string_view bytes, ImageHeader& header) {
  const absl::StatusOr<JpegHeader> jpeg = ReadJpegHeader(bytes);
  if (!jpeg.ok()) return jpeg.status();
  header.width = jpeg->frame.width;
  header.height = jpeg->frame.height;
  header.orientation = jpeg->orientation;
  header.decoder_bytes = JpegDecoderBytes(jpeg->frame);
  return absl::OkStatus();
}

// Returns true if the CRC at the end of `chunk` fits the chunk's type and data.
// `chunk` also includes its length.
bool HasValidCrc(absl::string_view chunk) {
  constexpr int kLength = 4, kCrc = 4;  // In bytes.
  const size_t size = chunk.size() - kLength - kCrc;
  return BigEndian(chunk, kLength + size, kCrc) ==
         crc32(0, reinterpret_cast<const Bytef*>(chunk.data()) + kLength, size);
}

// Source: PNG specification (third edition), 5.3 and 11.2.
absl::Status ReadPng(absl::string_view bytes, ImageHeader& header) {
  // Bytes of a chunk besides its data: its length, type and CRC.
  constexpr size_t kFrame = 12;
  if (bytes.size() < 33 || BigEndian(bytes, 8, 4) != 13 ||
      bytes.substr(12, 4) != "IHDR") {
    return Broken("PNG: no complete IHDR");
  }
  const uint32_t width = BigEndian(bytes, 16, 4);
  const uint32_t height = BigEndian(bytes, 20, 4);
  if (width > INT32_MAX || height > INT32_MAX) {
    return Broken("PNG: a side exceeds 2^31 - 1");
  }
  header.width = width;
  header.height = height;
  header.decoder_bytes = PngDecoderBytes(header.width);
  std::optional<int> orientation;
  bool pixels = false;
  for (size_t at = 8; bytes.size() - at >= kFrame;) {
    const uint64_t length = BigEndian(bytes, at, 4);
    if (length > bytes.size() - at - kFrame) break;
    const absl::string_view type = bytes.substr(at + 4, 4);
    pixels = pixels || type == "IDAT";
    // In PNG, an acTL chunk after the first IDAT chunk has no meaning.
    if (type == "acTL" && !pixels) return Unsupported("PNG: animated");
    if (type == "eXIf" && !orientation.has_value() &&
        HasValidCrc(bytes.substr(at, length + kFrame))) {
      orientation = ExifOrientation(bytes.substr(at + 8, length));
    }
    at += length + kFrame;
  }
  header.orientation = orientation.value_or(1);
  return absl::OkStatus();
}

// Returns true if the file's VP8X chunk has the flag for EXIF. libwebp ignores
// EXIF without this flag. Source: WebP container specification, "Extended File
// Format".
bool HasExifFlag(absl::string_view bytes) {
  constexpr size_t kFlags = 20;
  constexpr char kExif = 0x08;
  return bytes.substr(12, 4) == "VP8X" && bytes.size() > kFlags &&
         (bytes[kFlags] & kExif) != 0;
}

// Source: WebP container specification.
absl::Status ReadWebp(absl::string_view bytes, ImageHeader& header) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(reinterpret_cast<const uint8_t*>(bytes.data()),
                      bytes.size(), &features) != VP8_STATUS_OK) {
    return Broken("WebP: the header is broken");
  }
  if (features.has_animation) return Unsupported("WebP: animated");
  header.width = features.width;
  header.height = features.height;
  constexpr int kLossy = 1;
  header.decoder_bytes =
      WebpDecoderBytes(features.width, features.height,
                       features.format != kLossy, features.has_alpha != 0);
  std::optional<int> orientation;
  for (size_t at = 12; HasExifFlag(bytes) && bytes.size() - at >= 8;) {
    const uint64_t length = LittleEndian(bytes, at + 4, 4);
    if (length > bytes.size() - at - 8) break;
    if (bytes.substr(at, 4) == "EXIF" && !orientation.has_value()) {
      orientation = ExifOrientation(bytes.substr(at + 8, length));
    }
    at += 8 + std::min<uint64_t>(length + length % 2, bytes.size() - at - 8);
  }
  header.orientation = orientation.value_or(1);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckImageSize(int64_t width, int64_t height,
                            const ImageLimits& limits) {
  if (width <= 0 || height <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the picture is empty: ", width, " x ", height, " pixels"));
  }
  // The sides are compared first, so that the product cannot overflow.
  if (std::max(width, height) > limits.max_side ||
      width * height > limits.max_pixels) {
    return absl::OutOfRangeError(absl::StrCat(
        width, " x ", height, " pixels, expected at most ", limits.max_pixels,
        " and sides of at most ", limits.max_side));
  }
  return absl::OkStatus();
}

absl::StatusOr<ImageHeader> ReadImageHeader(absl::string_view bytes,
                                            const ImageLimits& limits) {
  if (bytes.size() > limits.max_bytes) {
    return absl::OutOfRangeError(absl::StrCat(
        bytes.size(), " bytes, expected at most ", limits.max_bytes));
  }
  const std::optional<ImageFormat> format = FormatOf(bytes);
  if (!format.has_value()) return ForeignFormat(bytes);
  ImageHeader header;
  header.format = *format;
  absl::Status status;
  switch (*format) {
    case ImageFormat::kJpeg:
      status = ReadJpeg(bytes, header);
      break;
    case ImageFormat::kPng:
      status = ReadPng(bytes, header);
      break;
    case ImageFormat::kWebp:
      status = ReadWebp(bytes, header);
      break;
  }
  if (status.ok()) status = CheckImageSize(header.width, header.height, limits);
  if (!status.ok()) return status;
  return header;
}

}  // namespace sfmamba::base
