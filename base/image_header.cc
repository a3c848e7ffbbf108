// Every length that is read from the bytes is checked against what is left.
#include "base/image_header.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/decoder_memory.h"
#include "base/orientation.h"
#include "webp/decode.h"

namespace sfmamba::base {
namespace {

constexpr absl::string_view kJpegMagic = "\xFF\xD8\xFF";
constexpr int kProgressive = 0xC2, kScan = 0xDA;  // JPEG's markers.
constexpr absl::string_view kPngMagic = "\x89PNG\r\n\x1A\n";
constexpr absl::string_view kExifMagic("Exif\0\0", 6);

absl::Status Unsupported(absl::string_view message) {
  return absl::UnimplementedError(message);
}

absl::Status Broken(absl::string_view message) {
  return absl::InvalidArgumentError(message);
}

// Reads a frame header (SOF): length (2 bytes), precision (1), height (2),
// width (2), components (1), and for each component its id (1), sampling
// factors (4 bits each) and table (1). Source: ITU-T T.81, B.2.2.
absl::Status ReadFrame(int marker, absl::string_view segment,
                       JpegFrame& frame) {
  // Baseline, extended, progressive, and the last two with arithmetic coding.
  constexpr int kDecodable[] = {0xC0, 0xC1, 0xC2, 0xC9, 0xCA};
  if (std::find(std::begin(kDecodable), std::end(kDecodable), marker) ==
      std::end(kDecodable)) {
    return Unsupported(
        absl::StrCat("JPEG: frame type SOF", marker - 0xC0,
                     " (lossless or hierarchical) is not supported"));
  }
  if (segment.size() < 8) return Broken("JPEG: the frame header is too short");
  const int precision = BigEndian(segment, 2, 1);
  const int components = BigEndian(segment, 7, 1);
  if (precision != 8) {
    return Unsupported(
        absl::StrCat("JPEG: ", precision, " bits a sample, expected 8"));
  }
  if (components != 1 && components != 3 && components != 4) {
    return Unsupported(
        absl::StrCat("JPEG: ", components, " components, expected 1, 3 or 4"));
  }
  if (segment.size() < size_t{8} + 3 * components) {
    return Broken("JPEG: the frame header is too short");
  }
  frame.height = BigEndian(segment, 3, 2);
  frame.width = BigEndian(segment, 5, 2);
  frame.components = components;
  for (int i = 0; i < components; ++i) {
    const int factors = BigEndian(segment, 9 + 3 * i, 1);
    frame.sampling[i] = {factors >> 4, factors & 15};
    if (factors >> 4 < 1 || factors >> 4 > 4 || (factors & 15) < 1 ||
        (factors & 15) > 4) {
      return Broken("JPEG: a sampling factor is not 1 to 4");
    }
  }
  frame.several_scans = marker == kProgressive || marker == 0xCA;
  return absl::OkStatus();
}

// Whether the scan whose header `bytes` begin with has all components. `bytes`
// are what follows the frame header. False also if that is not clear, as where
// libjpeg would have to guess.
bool FirstScanHasAll(absl::string_view bytes, int components) {
  size_t at = 0;
  while (at + 4 < bytes.size() && BigEndian(bytes, at, 1) == 0xFF) {
    while (at < bytes.size() && BigEndian(bytes, at, 1) == 0xFF) ++at;
    if (at + 4 > bytes.size()) return false;
    const int marker = BigEndian(bytes, at++, 1);
    if (marker == kScan) return BigEndian(bytes, at + 2, 1) == components;
    const bool has_length = marker >= 0xC0 && (marker < 0xD0 || marker > 0xD9);
    const size_t length = BigEndian(bytes, at, 2);
    if (!has_length || length < 2 || length > bytes.size() - at) return false;
    at += length;
  }
  return false;
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
      return Broken("JPEG: no marker where one is expected");
    }
    while (at < bytes.size() && BigEndian(bytes, at, 1) == 0xFF) ++at;
    if (at + 3 > bytes.size()) break;
    const int marker = BigEndian(bytes, at++, 1);
    const size_t length = BigEndian(bytes, at, 2);
    if (length < 2 || length > bytes.size() - at) break;
    const absl::string_view segment = bytes.substr(at, length);
    if (IsFrame(marker)) {
      JpegFrame frame;
      const absl::Status status = ReadFrame(marker, segment, frame);
      if (!status.ok()) return status;
      header.width = frame.width;
      header.height = frame.height;
      frame.several_scans =
          frame.several_scans ||
          !FirstScanHasAll(bytes.substr(at + length), frame.components);
      header.decoder_bytes = JpegDecoderBytes(frame);
      return absl::OkStatus();
    }
    if (marker == kScan || marker == 0xD9) {
      return Broken("JPEG: no frame header before the first scan");
    }
    const absl::string_view payload = segment.substr(2);
    if (marker == 0xE1 && absl::StartsWith(payload, kExifMagic)) {
      header.orientation = ExifOrientation(payload.substr(kExifMagic.size()));
    }
    at += length;
  }
  return Broken("JPEG: it ends before its frame header");
}

// Source: PNG specification (third edition), 5.3 and 11.2.
absl::Status ReadPngHeader(absl::string_view bytes, ImageHeader& header) {
  constexpr size_t kFrame = 12;  // Bytes around a chunk's data: length, type,
                                 // CRC.
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
  for (size_t at = 8; bytes.size() - at >= kFrame;) {
    const uint64_t length = BigEndian(bytes, at, 4);
    if (length > bytes.size() - at - kFrame) break;
    const absl::string_view type = bytes.substr(at + 4, 4);
    if (type == "acTL") return Unsupported("PNG: animated");
    if (type == "eXIf") {
      header.orientation = ExifOrientation(bytes.substr(at + 8, length));
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
    return Broken("WebP: the header is broken");
  }
  if (features.has_animation) return Unsupported("WebP: animated");
  header.width = features.width;
  header.height = features.height;
  constexpr int kLossy = 1;
  header.decoder_bytes =
      WebpDecoderBytes(features.width, features.height,
                       features.format != kLossy, features.has_alpha != 0);
  for (size_t at = 12; bytes.size() - at >= 8;) {
    const uint64_t length = LittleEndian(bytes, at + 4, 4);
    if (length > bytes.size() - at - 8) break;
    if (bytes.substr(at, 4) == "EXIF") {
      absl::string_view payload = bytes.substr(at + 8, length);
      if (absl::StartsWith(payload, kExifMagic)) {
        payload.remove_prefix(kExifMagic.size());
      }
      header.orientation = ExifOrientation(payload);
    }
    at += 8 + std::min<uint64_t>(length + length % 2, bytes.size() - at - 8);
  }
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
    return Unsupported(
        absl::StrCat("the first of ", bytes.size(),
                     " bytes are not those of a JPEG, PNG or WebP picture"));
  }
  if (status.ok()) status = CheckImageSize(header.width, header.height, limits);
  if (!status.ok()) return status;
  return header;
}

}  // namespace sfmamba::base
