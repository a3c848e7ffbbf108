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

// The size of the picture that DecodeImage() will return and the memory that it
// will need. Both are computed from the header alone.
struct DecodeNeeds {
  int width = 0;  // Size of the returned picture, scaled and oriented.
  int height = 0;
  // The most bytes that are allocated at the same time, including the result.
  int64_t bytes = 0;
};
DecodeNeeds NeedsOf(const ImageHeader& header, bool apply_orientation,
                    int min_side);

// Decodes a picture to RGB. Grey is expanded and alpha is dropped. The
// orientation is applied if `apply_orientation` is true.
//
// A JPEG is decoded at the smallest scale of 1/8, 1/4, 1/2 and 1 that leaves
// both sides at least `min_side` pixels long. If `min_side` is 0, it is decoded
// at full size.
//
// Returns the errors of ReadImageHeader(). Returns INVALID_ARGUMENT for
// truncated or corrupt bytes, but never a partial picture. Returns the status
// of `watch` soon after `watch` expires. Never allocates more memory than
// NeedsOf() says. `decoded` is called for each row if ComesInRows() is true.
absl::StatusOr<RgbImage> DecodeImage(
    absl::string_view bytes, const ImageLimits& limits, bool apply_orientation,
    int min_side, const DecodeWatch& watch = DecodeWatch(),
    RowsDecoded decoded = [](const RgbImage&, int) {});

// Returns true if DecodeRows() supports the picture. It must be a JPEG that
// need not be rotated or mirrored.
bool ComesInRows(const ImageHeader& header, bool apply_orientation);

// Decodes like DecodeImage(), but writes each row to the address that `row`
// returns, so that the whole picture need not be in memory. NeedsOf() says how
// large the decoded picture is. Allocates at most header.decoder_bytes.
// Requires ComesInRows().
absl::Status DecodeRows(absl::string_view bytes, const ImageHeader& header,
                        int min_side, const DecodeWatch& watch, RowPlace row);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_IMAGE_DECODER_H_
