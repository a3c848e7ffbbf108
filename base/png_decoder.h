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

// Decodes a PNG with the header's `width` and `height` into `rgb`, [height,
// width, 3] bytes. Palettes and grey are expanded, and alpha is dropped. Only
// the high byte of 16-bit samples is used. Palette indices without a colour
// become black.
//
// Errors in data that no pixel needs are ignored. Such data are ancillary
// chunks, a palette that the pixels do not use, rows beyond the height, and
// bytes after the end of the compressed data. Returns INVALID_ARGUMENT if other
// bytes are truncated or corrupt, or if the CRC of any other chunk is wrong.
// Returns the error of `watch` if `watch` expires. After an error, `rgb` holds
// part of the picture.
absl::Status DecodePng(absl::string_view bytes, int width, int height,
                       const DecodeWatch& watch, uint8_t* rgb);

// The samples of a grey PNG as stored, from 0 to 2^bit_depth - 1, without gamma
// correction.
struct GreyPng {
  int width = 0;
  int height = 0;
  int bit_depth = 0;           // 1, 2, 4, 8 or 16.
  std::vector<uint16_t> data;  // [height, width]
};

// Decodes a grey PNG. Returns the errors of ReadImageHeader(). Returns
// INVALID_ARGUMENT if the bytes are truncated or corrupt, or are not a grey PNG
// without alpha.
absl::StatusOr<GreyPng> DecodeGreyPng(absl::string_view bytes,
                                      const ImageLimits& limits);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_PNG_DECODER_H_
