#include "client/picture/picture_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/picture/exif.h"
#include "client/picture/jpeg_reader.h"
#include "client/picture/png_codec.h"
#include "webp/decode.h"

namespace sfmamba::client {
namespace {

absl::Status Error(absl::string_view message) {
  return absl::InvalidArgumentError(message);
}

uint32_t LittleEndian(absl::string_view bytes, size_t offset) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) {
    value = value << 8 | static_cast<uint8_t>(bytes[offset + i]);
  }
  return value;
}

// The payload of the last EXIF chunk; empty if there is none.
// Source: WebP container specification.
absl::string_view WebpExif(absl::string_view bytes) {
  absl::string_view exif;
  for (size_t at = 12; at + 8 <= bytes.size();) {
    const uint64_t length = LittleEndian(bytes, at + 4);
    if (length > bytes.size() - at - 8) break;
    if (bytes.substr(at, 4) == "EXIF") exif = bytes.substr(at + 8, length);
    at += 8 + length + length % 2;
  }
  return exif;
}

absl::StatusOr<Picture> ReadWebp(absl::string_view bytes, std::string* exif) {
  const uint8_t* data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK) {
    return Error("WebP: the header is broken");
  }
  if (features.has_animation) return Error("WebP: animated, expected a still");
  const absl::Status status = CheckPictureSize(features.width, features.height);
  if (!status.ok()) return status;
  Picture picture;
  picture.width = features.width;
  picture.height = features.height;
  picture.data.resize(size_t{3} * picture.width * picture.height);
  if (WebPDecodeRGBInto(data, bytes.size(), picture.data.data(),
                        picture.data.size(), 3 * picture.width) == nullptr) {
    return Error("WebP: the data are truncated or corrupt");
  }
  *exif = std::string(WebpExif(bytes));
  return picture;
}

}  // namespace

absl::StatusOr<Picture> ReadPicture(absl::string_view bytes) {
  std::string exif;
  absl::StatusOr<Picture> stored;
  if (absl::StartsWith(bytes, "\xFF\xD8\xFF")) {
    stored = ReadJpeg(bytes, &exif);
  } else if (absl::StartsWith(bytes, "\x89PNG")) {
    stored = ReadRgbPng(bytes, &exif);
  } else if (absl::StartsWith(bytes, "RIFF") && bytes.size() >= 12 &&
             bytes.substr(8, 4) == "WEBP") {
    stored = ReadWebp(bytes, &exif);
  } else {
    return Error(
        absl::StrCat("the first of ", bytes.size(),
                     " bytes are not those of a JPEG, PNG or WebP picture"));
  }
  if (!stored.ok()) return stored;
  return Orient(*std::move(stored), OrientationOf(exif));
}

}  // namespace sfmamba::client
