#ifndef SFMAMBA_BASE_IMAGE_DECODER_H_
#define SFMAMBA_BASE_IMAGE_DECODER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/decode_watch.h"
#include "base/image_header.h"
#include "base/jpeg_decoder.h"
#include "base/rgb_image.h"

namespace sfmamba::base {

// What DecodeImage() gives and takes, foreseen from the header.
struct DecodeNeeds {
  int width = 0;  // The returned picture's, after scaling and orientation.
  int height = 0;
  int64_t bytes = 0;  // The most that is allocated at a time, result included.
};
DecodeNeeds NeedsOf(const ImageHeader& header, bool apply_orientation,
                    int min_side);

// Decodes to RGB: grey expanded, alpha dropped, orientation applied if asked. A
// JPEG is decoded at the smallest scale of 1/8, 1/4, 1/2 and 1 whose short and
// long sides stay at least `min_side` (0: full size). Returns the errors of
// ReadImageHeader(), INVALID_ARGUMENT for truncated or corrupt bytes, never a
// partial picture, and DEADLINE_EXCEEDED as soon as `watch` is seen to have
// expired. It never allocates more than NeedsOf() says. `decoded` is told of
// the rows of pictures that ComesInRows().
absl::StatusOr<RgbImage> DecodeImage(
    absl::string_view bytes, const ImageLimits& limits, bool apply_orientation,
    int min_side, const DecodeWatch& watch = DecodeWatch(),
    RowsDecoded decoded = [](const RgbImage&, int) {});

// Whether DecodeRows() takes a picture with this header: a JPEG that need not
// be turned.
bool ComesInRows(const ImageHeader& header, bool apply_orientation);

// Decodes as DecodeImage() does, but writes the rows where `row` says, so that
// the picture need not be in memory as a whole. It has the size that NeedsOf()
// says, and nothing but header.decoder_bytes is allocated. Requires
// ComesInRows().
absl::Status DecodeRows(absl::string_view bytes, const ImageHeader& header,
                        int min_side, const DecodeWatch& watch, RowPlace row);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_IMAGE_DECODER_H_
