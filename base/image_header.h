#ifndef SFMAMBA_BASE_IMAGE_HEADER_H_
#define SFMAMBA_BASE_IMAGE_HEADER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/image_format.h"

namespace sfmamba::base {

struct ImageLimits {
  int64_t max_bytes = 32 << 20;     // Encoded.
  int64_t max_pixels = 50'000'000;  // Width times height in the header.
  int max_side = 16384;             // Pixels.
  // In processor time. Callers enforce it with a DecodeWatch.
  absl::Duration max_decode_time = absl::Seconds(1);
};

struct ImageHeader {
  ImageFormat format;
  int width = 0;  // Pixels as stored, before orientation.
  int height = 0;
  int orientation = 1;  // EXIF, 1..8; 1 where absent or corrupt.
  // The memory that decoding takes at most beside the decoded picture.
  int64_t decoder_bytes = 0;
};

// Returns INVALID_ARGUMENT unless both sides are positive, and OUT_OF_RANGE if
// a side or the number of pixels exceeds the limits.
absl::Status CheckImageSize(int64_t width, int64_t height,
                            const ImageLimits& limits);

// Reads format and size without decoding; at most 64 KiB are allocated
// meanwhile. Returns UNIMPLEMENTED unless it is an 8-bit JPEG, a PNG or a still
// WebP, INVALID_ARGUMENT for a broken header, and OUT_OF_RANGE beyond the
// limits.
absl::StatusOr<ImageHeader> ReadImageHeader(absl::string_view bytes,
                                            const ImageLimits& limits);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_IMAGE_HEADER_H_
