#ifndef SFMAMBA_CLIENT_PICTURE_PNG_CODEC_H_
#define SFMAMBA_CLIENT_PICTURE_PNG_CODEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/picture/picture.h"

namespace sfmamba::client {

// A grey PNG's samples as stored: 0 .. 2^bit_depth - 1, no gamma applied.
struct GreyPng {
  int width = 0;
  int height = 0;
  int bit_depth = 0;           // 1, 2, 4, 8 or 16.
  std::vector<uint16_t> data;  // [height, width]
};

// Both readers return INVALID_ARGUMENT for truncated or corrupt bytes and for
// sizes beyond picture.h's limits. Chunks that tell of colours are ignored.

// Any PNG, as stored: grey and palettes are expanded, alpha and the low bits of
// 16-bit samples dropped. `exif` gets its EXIF block, if it has one.
absl::StatusOr<Picture> ReadRgbPng(absl::string_view bytes, std::string* exif);

// INVALID_ARGUMENT also if the PNG is not grey without alpha.
absl::StatusOr<GreyPng> ReadGreyPng(absl::string_view bytes);

// `picture` as an 8-bit RGB PNG. INVALID_ARGUMENT if it has no pixels or more
// than a PNG can have.
absl::StatusOr<std::string> WritePng(const Picture& picture);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_PICTURE_PNG_CODEC_H_
