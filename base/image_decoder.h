#ifndef SFMAMBA_BASE_IMAGE_DECODER_H_
#define SFMAMBA_BASE_IMAGE_DECODER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/decode_watch.h"
#include "base/image_header.h"
#include "base/rgb_image.h"

namespace sfmamba::base {

// Decodes to RGB: grey expanded, alpha dropped, orientation applied if asked. A
// JPEG is decoded at the smallest scale M/8 whose short and long sides stay at
// least `min_side` (0: full size). Returns the errors of ReadImageHeader(),
// INVALID_ARGUMENT for truncated or corrupt bytes, never a partial picture, and
// DEADLINE_EXCEEDED as soon as `watch` is seen to have expired. Memory beside
// the result is at most that of a JPEG's coefficients (8 bytes a pixel), a
// WebP's 4 bytes a pixel, and a second picture if it is turned.
absl::StatusOr<RgbImage> DecodeImage(absl::string_view bytes,
                                     const ImageLimits& limits,
                                     bool apply_orientation, int min_side,
                                     const DecodeWatch& watch = DecodeWatch());

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_IMAGE_DECODER_H_
