#ifndef SFMAMBA_BASE_IMAGE_HEADER_H_
#define SFMAMBA_BASE_IMAGE_HEADER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sfmamba::base {

enum class ImageFormat { kJpeg, kPng, kWebp };

struct ImageLimits {
  int64_t max_bytes = 32 << 20;     // Encoded.
  int64_t max_pixels = 50'000'000;  // Of the header.
  int max_side = 16384;
  // Of the processor. Holds for callers that decode with a DecodeWatch of it.
  absl::Duration max_decode_time = absl::Seconds(1);
};

struct ImageHeader {
  ImageFormat format;
  int width = 0;  // As stored, before orientation.
  int height = 0;
  int orientation = 1;  // EXIF, 1..8; 1 where absent or corrupt.
};

// INVALID_ARGUMENT unless both sides are positive, OUT_OF_RANGE if they or the
// pixels exceed the limits.
absl::Status CheckImageSize(int64_t width, int64_t height,
                            const ImageLimits& limits);

// Reads format and size without decoding or allocating. UNIMPLEMENTED for what
// is not a JPEG of 8 bits, a PNG or a still WebP by its first bytes;
// INVALID_ARGUMENT for a broken header; OUT_OF_RANGE beyond the limits.
absl::StatusOr<ImageHeader> ReadImageHeader(absl::string_view bytes,
                                            const ImageLimits& limits);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_IMAGE_HEADER_H_
