#ifndef SFMAMBA_SERVER_IMAGE_IMAGE_H_
#define SFMAMBA_SERVER_IMAGE_IMAGE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/image/decode_watch.h"
#include "server/image/image_buffer.h"

namespace sfmamba::image {

enum class ImageFormat { kJpeg, kPng, kWebp };

struct ImageLimits {
  int64_t max_bytes = 32 << 20;     // Encoded.
  int64_t max_pixels = 50'000'000;  // Of the header.
  int max_side = 16384;
  absl::Duration max_decode_time = absl::Seconds(1);  // Of the processor.
};

struct ImageHeader {
  ImageFormat format;
  int width = 0;  // As stored, before orientation.
  int height = 0;
  int orientation = 1;  // EXIF, 1..8; 1 where absent or corrupt.
};

// In pixels.
struct PictureSize {
  int height = 0;
  int width = 0;

  int64_t pixels() const { return int64_t{1} * height * width; }
};

// 8-bit RGB, rows tight.
struct RgbImage {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> data;  // [height, width, 3]
};

// A rectangle in fractions of the picture, 0 <= min < max <= 1.
struct CropRect {
  float x_min = 0, y_min = 0, x_max = 1, y_max = 1;
};

// The same in pixels.
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

// Reads format and size without decoding or allocating. INVALID_ARGUMENT with
// reason IMAGE_FORMAT_UNSUPPORTED (not JPEG, PNG or still WebP by its magic
// bytes), IMAGE_DECODE_FAILED (broken header) or IMAGE_TOO_LARGE.
absl::StatusOr<ImageHeader> ReadImageHeader(absl::string_view bytes,
                                            const ImageLimits& limits);

// Decodes to RGB: grey expanded, alpha dropped, orientation applied if asked. A
// JPEG is decoded at the smallest scale M/8 whose short and long sides stay at
// least `min_side` (0: full size). The errors of ReadImageHeader, and
// IMAGE_DECODE_FAILED for truncated or corrupt bytes, never a partial picture;
// the error of DecodedTooSlowly as soon as `watch` is seen to have expired.
// Memory beside the result is at most that of a JPEG's coefficients (8 bytes a
// pixel), a WebP's 4 bytes a pixel, and a second picture if it is turned.
absl::StatusOr<RgbImage> DecodeImage(absl::string_view bytes,
                                     const ImageLimits& limits,
                                     bool apply_orientation, int min_side,
                                     const DecodeWatch& watch = DecodeWatch());

// INVALID_ARGUMENT with reason IMAGE_DECODE_TIMEOUT. For an expired watch.
absl::Status DecodedTooSlowly(const DecodeWatch& watch);

// The size of the picture once its orientation is applied, or ignored.
PictureSize OrientedSize(const ImageHeader& header, bool apply_orientation);

// The pixels inside `rect` of a picture: edges rounded to the nearest pixel, at
// least one pixel.
PixelRect ToPixels(const CropRect& rect, const PictureSize& size);

// The part of `image` inside `rect`, which is inside the picture.
RgbImage Crop(const RgbImage& image, const PixelRect& rect);

// Resize as Pillow's bicubic does, bit for bit, then crop or pad to size x size
// around the middle. Only what the crop needs is computed.
// Source: docs/network.md, "Preprocessing"; Pillow's published resampling.
ImageBuffer Preprocess(const RgbImage& image, const PreprocessOptions& options);

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_IMAGE_H_
