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

// A size in pixels.
struct PictureSize {
  int height = 0;
  int width = 0;

  int64_t pixels() const { return int64_t{1} * height * width; }
};

// A rectangle in fractions of the picture's width and height. The default is
// the whole picture. The crop of a request has 0 <= min < max <= 1. Other
// rectangles may extend beyond the picture, for example the result of
// SeenPart().
struct CropRect {
  float x_min = 0, y_min = 0, x_max = 1, y_max = 1;
};

// A rectangle in pixels of the picture.
struct PixelRect {
  int left = 0, top = 0, width = 0, height = 0;
};

enum class ResizeMode {
  kCenterCrop,  // The short side becomes resize_size.
  kStretch,     // Both sides become resize_size.
  kLetterbox,   // The long side becomes resize_size, and grey fills the rest.
};

struct PreprocessOptions {
  int size = 224;         // The side of the square result, in pixels.
  int resize_size = 224;  // `mode` resizes a side to this many pixels.
  ResizeMode mode = ResizeMode::kCenterCrop;
};

// Converts an error of the decoders or of DecodeWatch in base/ to the error
// that the client gets. Returns CANCELLED unchanged. All other errors become
// INVALID_ARGUMENT with a reason that depends on the code of `status`:
//   UNIMPLEMENTED      IMAGE_FORMAT_UNSUPPORTED
//   OUT_OF_RANGE       IMAGE_TOO_LARGE
//   DEADLINE_EXCEEDED  IMAGE_DECODE_TIMEOUT
//   other codes        IMAGE_DECODE_FAILED
absl::Status DecodeError(const absl::Status& status);

struct RowsInput {
  ImageBuffer image;
  absl::Duration preprocess;  // The time spent resizing.
};

// Does the same as base::DecodeImage() followed by Preprocess(), but resizes
// each row soon after it is decoded. May be called only if base::ComesInRows()
// is true for the picture. If decoding fails, returns the result of
// DecodeError().
absl::StatusOr<RowsInput> DecodeAndPreprocess(absl::string_view bytes,
                                              const ImageHeader& header,
                                              int min_side,
                                              const PreprocessOptions& options,
                                              const DecodeWatch& watch);

// Returns the size of the picture. If `apply_orientation` is true, this is the
// size after the rotation that the EXIF orientation asks for.
PictureSize OrientedSize(const ImageHeader& header, bool apply_orientation);

// Returns the pixels inside `rect` of a picture. Edges are rounded to the
// nearest pixel, and the result has at least one pixel.
PixelRect ToPixels(const CropRect& rect, const PictureSize& size);

// Returns the rectangle of the picture that Preprocess() uses, in fractions of
// the picture. If Preprocess() pads the picture, the rectangle is larger than
// the picture. Some coordinates are then below 0 or above 1.
CropRect SeenPart(const PictureSize& picture, const PreprocessOptions& options);

// Resizes the picture like Pillow's bicubic filter, with identical results.
// Then crops the centre or pads the edges to options.size x options.size
// pixels. If `part` is set, treats this part as the whole picture. Computes
// only the pixels that are not cropped away. Checks `watch` every few rows. If
// the watch has expired, converts its status with DecodeError() and returns the
// error. Source: docs/network.md, "Preprocessing"; Pillow's published
// resampling.
absl::StatusOr<ImageBuffer> Preprocess(
    const RgbImage& image, const PreprocessOptions& options,
    const DecodeWatch& watch = DecodeWatch(),
    std::optional<PixelRect> part = std::nullopt);

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_IMAGE_H_
