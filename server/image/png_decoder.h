#ifndef SFMAMBA_SERVER_IMAGE_PNG_DECODER_H_
#define SFMAMBA_SERVER_IMAGE_PNG_DECODER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/image/decode_watch.h"

namespace sfmamba::image {

// Decodes a PNG of the header's `width` and `height` into `rgb`:
// [height, width, 3]. Palette and grey are expanded, alpha is dropped, of 16
// bits the high byte is kept, ancillary chunks are skipped. INVALID_ARGUMENT
// without reason for truncated or corrupt bytes, a wrong CRC anywhere included;
// `watch`'s error if it expires. `rgb` then holds part of the picture.
absl::Status DecodePng(absl::string_view bytes, int width, int height,
                       const DecodeWatch& watch, uint8_t* rgb);

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_PNG_DECODER_H_
