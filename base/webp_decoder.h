#ifndef SFMAMBA_BASE_WEBP_DECODER_H_
#define SFMAMBA_BASE_WEBP_DECODER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/decode_watch.h"
#include "base/rgb_image.h"

namespace sfmamba::base {

// Decodes a still WebP whose header ReadImageHeader() has accepted into
// `image`, which has the header's size; alpha is dropped. INVALID_ARGUMENT for
// truncated or corrupt bytes; `watch`'s error if it expires. `image` then holds
// part of the picture.
absl::Status DecodeWebp(absl::string_view bytes, const DecodeWatch& watch,
                        RgbImage& image);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_WEBP_DECODER_H_
