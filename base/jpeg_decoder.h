#ifndef SFMAMBA_BASE_JPEG_DECODER_H_
#define SFMAMBA_BASE_JPEG_DECODER_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/decode_watch.h"
#include "base/decoder_memory.h"

namespace sfmamba::base {

struct JpegHeader {
  JpegFrame frame;
  int orientation = 1;  // EXIF, 1..8.
};

// Reads what is before a JPEG's first scan, as DecodeJpeg() will: bytes between
// the segments are skipped. UNIMPLEMENTED for kinds that are not decoded,
// OUT_OF_RANGE for sides beyond libjpeg's, INVALID_ARGUMENT for all else that
// is wrong.
absl::StatusOr<JpegHeader> ReadJpegHeader(absl::string_view bytes);

// Says where row y of a picture is to be written, [width, 3]. Called for each
// row from the top; the one before is written then. It throws nothing.
using RowPlace = absl::FunctionRef<uint8_t*(int y)>;

// Decodes a JPEG at `eighths`/8 (1..8) of its size: [height, width, 3], where a
// side is that of the header times eighths / 8, rounded up. Grey is expanded;
// CMYK is taken as inverted, as Adobe's and Pillow's is. INVALID_ARGUMENT for
// everything that costs pixels: truncated or corrupt data, more than 100 scans,
// or more than `max_memory` bytes beside the rows; `watch`'s error if it
// expires. Only some of the rows are written then. Up to 1 KiB of other bytes
// behind scans, or before the end marker, is taken for junk; more would be rows
// that the header does not count. The sides are those of ReadJpegHeader().
absl::Status DecodeJpeg(absl::string_view bytes, int eighths, int width,
                        int height, int64_t max_memory,
                        const DecodeWatch& watch, RowPlace row);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_JPEG_DECODER_H_
