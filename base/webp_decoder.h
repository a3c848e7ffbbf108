#ifndef SFMAMBA_BASE_WEBP_DECODER_H_
#define SFMAMBA_BASE_WEBP_DECODER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/decode_watch.h"
#include "base/rgb_image.h"

namespace sfmamba::base {

// Decodes a WebP without animation into `image`. ReadImageHeader() must have
// accepted the file, and `image` must have the header's size. Alpha is dropped.
// Returns INVALID_ARGUMENT for truncated or corrupt bytes, and the error of
// `watch` if `watch` expires. After an error, `image` holds part of the
// picture.
absl::Status DecodeWebp(absl::string_view bytes, const DecodeWatch& watch,
                        RgbImage& image);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_WEBP_DECODER_H_
