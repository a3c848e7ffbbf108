#ifndef SFMAMBA_BASE_PNG_DECODER_H_
#define SFMAMBA_BASE_PNG_DECODER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/decode_watch.h"
#include "base/image_header.h"

namespace sfmamba::base {

// Decodes a PNG of the header's `width` and `height` into `rgb`:
// [height, width, 3]. Palettes and grey are expanded, alpha is dropped, and of
// 16 bits the high byte is kept. Chunks that no pixel needs are skipped,
// whatever is wrong with them: ancillary ones, the palette of a picture that
// has none, rows beyond the height, and what follows the end of the compressed
// data. Indices beyond the palette are black. Returns
// INVALID_ARGUMENT for truncated or corrupt bytes, including a wrong CRC of any
// other chunk, and `watch`'s error if it expires; `rgb` then holds part of the
// picture.
absl::Status DecodePng(absl::string_view bytes, int width, int height,
                       const DecodeWatch& watch, uint8_t* rgb);

// The samples of a grey PNG as stored, 0 .. 2^bit_depth - 1, without gamma.
struct GreyPng {
  int width = 0;
  int height = 0;
  int bit_depth = 0;           // 1, 2, 4, 8 or 16.
  std::vector<uint16_t> data;  // [height, width]
};

// Decodes a grey PNG. Returns the errors of ReadImageHeader(), and
// INVALID_ARGUMENT if the bytes are truncated or corrupt, or not a grey PNG
// without alpha.
absl::StatusOr<GreyPng> DecodeGreyPng(absl::string_view bytes,
                                      const ImageLimits& limits);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_PNG_DECODER_H_
