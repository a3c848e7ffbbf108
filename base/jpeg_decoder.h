#ifndef SFMAMBA_BASE_JPEG_DECODER_H_
#define SFMAMBA_BASE_JPEG_DECODER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/decode_watch.h"

namespace sfmamba::base {

// Decodes a JPEG at `eighths`/8 (1..8) of its size into `rgb`: [height, width,
// 3], where a side is that of the header times eighths / 8, rounded up. Grey is
// expanded; CMYK is taken as inverted, as Adobe's and Pillow's is.
// INVALID_ARGUMENT for everything that costs pixels: truncated or corrupt data,
// more than 100 scans, or more than `max_memory` bytes beside `rgb`; `watch`'s
// error if it expires. `rgb` then holds part of the picture.
absl::Status DecodeJpeg(absl::string_view bytes, int eighths, int width,
                        int height, int64_t max_memory,
                        const DecodeWatch& watch, uint8_t* rgb);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_JPEG_DECODER_H_
