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
  int orientation = 1;  // EXIF's orientation, 1 to 8.
};

// Reads a JPEG's headers up to its first scan. Like DecodeJpeg(), skips other
// bytes between segments. Returns UNIMPLEMENTED for kinds of JPEG that are not
// decoded. Returns OUT_OF_RANGE if a side is longer than libjpeg supports.
// Returns INVALID_ARGUMENT for any other error.
absl::StatusOr<JpegHeader> ReadJpegHeader(absl::string_view bytes);

// Returns the address to which row y of a picture is written as [width, 3]
// bytes. Called for each row from top to bottom, after the previous row was
// written. Must not throw.
using RowPlace = absl::FunctionRef<uint8_t*(int y)>;

// Decodes a JPEG at `eighths`/8 (1..8) of its size to rows of [width, 3] bytes.
// `width` and `height` are the sides in the header times eighths / 8, rounded
// up. Grey is expanded. CMYK is assumed to be inverted, as Adobe and Pillow
// write it.
//
// Returns INVALID_ARGUMENT if a pixel is lost, because data are truncated or
// corrupt. Also returns INVALID_ARGUMENT if there are more than 100 scans, or
// if libjpeg needs more than `max_memory` bytes. Returns the error of `watch`
// if `watch` expires. After an error, only some of the rows are written.
//
// Up to 1 KiB of other bytes after scans or before the end marker is skipped as
// junk. More bytes are an error, because they would be rows that the header
// does not count.
absl::Status DecodeJpeg(absl::string_view bytes, int eighths, int width,
                        int height, int64_t max_memory,
                        const DecodeWatch& watch, RowPlace row);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_JPEG_DECODER_H_
