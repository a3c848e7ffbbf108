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
  int64_t max_bytes = 32 << 20;     // Size of the encoded file.
  int64_t max_pixels = 50'000'000;  // Width times height in the header.
  int max_side = 16384;             // Limit of width and height.
  // Limit of the decoder's CPU time. Callers enforce it with a DecodeWatch.
  absl::Duration max_decode_time = absl::Seconds(1);
};

struct ImageHeader {
  ImageFormat format;
  int width = 0;  // In pixels as stored, before orientation.
  int height = 0;
  int orientation = 1;  // EXIF's orientation, 1..8. 1 if absent or corrupt.
  // The most memory, in bytes, that decoding takes in addition to the picture.
  int64_t decoder_bytes = 0;
};

// Returns INVALID_ARGUMENT unless both sides are positive. Returns OUT_OF_RANGE
// if a side or the number of pixels exceeds its limit.
absl::Status CheckImageSize(int64_t width, int64_t height,
                            const ImageLimits& limits);

// Reads the format, size and orientation without decoding any pixel. Allocates
// at most 64 KiB. Returns UNIMPLEMENTED unless the file is an 8-bit JPEG, a PNG
// or a WebP, without animation. Returns INVALID_ARGUMENT if the header is
// corrupt. Returns OUT_OF_RANGE if the file or its picture exceeds the limits.
absl::StatusOr<ImageHeader> ReadImageHeader(absl::string_view bytes,
                                            const ImageLimits& limits);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_IMAGE_HEADER_H_
