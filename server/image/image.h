#ifndef SFMAMBA_SERVER_IMAGE_IMAGE_H_
#define SFMAMBA_SERVER_IMAGE_IMAGE_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/decode_watch.h"
#include "base/image_header.h"
#include "base/rgb_image.h"
#include "server/image/image_buffer.h"

namespace sfmamba::image {

using base::DecodeWatch;
using base::ImageFormat;
using base::ImageHeader;
using base::ImageLimits;
using base::RgbImage;
using base::RowsDecoded;

// In pixels.
struct PictureSize {
  int height = 0;
  int width = 0;

  int64_t pixels() const { return int64_t{1} * height * width; }
};

// A rectangle in fractions of the picture, 0 <= min < max <= 1.
struct CropRect {
  float x_min = 0, y_min = 0, x_max = 1, y_max = 1;
};

// A rectangle in pixels of the picture.
struct PixelRect {
  int left = 0, top = 0, width = 0, height = 0;
};

enum class ResizeMode {
  kCenterCrop,  // The short side to resize_size.
  kStretch,     // Both sides to resize_size.
  kLetterbox,   // The long side to resize_size; padded with a middle grey.
};

struct PreprocessOptions {
  int size = 224;         // Side of the result.
  int resize_size = 224;  // Side before the crop, by `mode`.
  ResizeMode mode = ResizeMode::kCenterCrop;
};

// The error that clients get for one of base/'s decoders or watches:
// INVALID_ARGUMENT with reason IMAGE_FORMAT_UNSUPPORTED, IMAGE_TOO_LARGE,
// IMAGE_DECODE_TIMEOUT or, of broken bytes, IMAGE_DECODE_FAILED. CANCELLED
// stays.
absl::Status DecodeError(const absl::Status& status);

struct RowsInput {
  ImageBuffer image;
  absl::Duration preprocess;  // The part of the time that was not decoding.
};

// base::DecodeImage() and Preprocess() in one for a picture that
// base::ComesInRows(): its rows are resized as they are decoded.
// DecodeError()s.
absl::StatusOr<RowsInput> DecodeAndPreprocess(absl::string_view bytes,
                                              const ImageHeader& header,
                                              int min_side,
                                              const PreprocessOptions& options,
                                              const DecodeWatch& watch);

// The size of the picture once its orientation is applied, or ignored.
PictureSize OrientedSize(const ImageHeader& header, bool apply_orientation);

// The pixels inside `rect` of a picture: edges rounded to the nearest pixel, at
// least one pixel.
PixelRect ToPixels(const CropRect& rect, const PictureSize& size);

// The rectangle of the picture that Preprocess() turns into its result, in
// fractions of the picture. It reaches beyond 0..1 where the result is padded.
CropRect SeenPart(const PictureSize& picture, const PreprocessOptions& options);

// Resize as Pillow's bicubic does, bit for bit, then crop or pad to size x size
// around the middle: the picture, or a `part` of it as if it were one of its
// own. Only what the crop needs is computed. The DecodeError() of `watch`,
// which is asked every few rows, if it expires.
// Source: docs/network.md, "Preprocessing"; Pillow's published resampling.
absl::StatusOr<ImageBuffer> Preprocess(
    const RgbImage& image, const PreprocessOptions& options,
    const DecodeWatch& watch = DecodeWatch(),
    std::optional<PixelRect> part = std::nullopt);

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_IMAGE_H_
