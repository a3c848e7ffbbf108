#ifndef SFMAMBA_TESTS_SERVER_PICTURE_H_
#define SFMAMBA_TESTS_SERVER_PICTURE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/image/image.h"

struct jpeg_compress_struct;

namespace sfmamba::server {

// Returns a smooth picture with different channels, which survives lossy
// compression.
image::RgbImage Gradient(int width, int height);
// Returns a grey picture with a rectangle of pure red.
image::RgbImage WithRed(int width, int height, const image::PixelRect& red);
// Returns the part of `image` inside `rect`, which must lie in the picture.
image::RgbImage Crop(const image::RgbImage& image,
                     const image::PixelRect& rect);
// Returns the largest difference between two bytes at the same position in `a`
// and `b`. Returns 256 if the sizes differ.
int MaxDifference(const image::RgbImage& a, const image::RgbImage& b);

// Encodes a JPEG from `data`, which has `components` bytes per pixel: 1 for
// grey, 3 for RGB, 4 for CMYK. `adjust` may change parameters before
// compression starts.
std::string EncodeJpeg(int width, int height, int components,
                       const uint8_t* data,
                       std::function<void(jpeg_compress_struct&)> adjust = {});
std::string EncodeJpeg(const image::RgbImage& image);
// Inserts `bytes` before the JPEG's first `marker`, such as "\xFF\xDB".
std::string Before(std::string jpeg, absl::string_view marker,
                   absl::string_view bytes);
// Returns an APP1 segment that contains `exif`.
std::string App1(absl::string_view exif);
// Inserts an APP1 segment with `exif` after the start of the JPEG.
std::string WithExif(const std::string& jpeg, absl::string_view exif);
// Returns an EXIF block whose only entry is the orientation.
std::string ExifOrientation(int orientation, bool little_endian);

struct PngOptions {
  int color_type = 2;  // RGB, as the PNG specification numbers it.
  int bit_depth = 8;
  bool interlaced = false;
};
// `data` contains the rows as a PNG stores them. Values of less than 8 bits are
// packed into bytes, and values of 16 bits are big-endian. Palette pictures get
// a palette of 4 colours, PaletteColor(0..3).
std::string EncodePng(int width, int height, const PngOptions& options,
                      const std::string& data);
std::string EncodePng(const image::RgbImage& image);
uint8_t PaletteColor(int index, int channel);
// Returns a chunk with its length and CRC.
std::string PngChunk(absl::string_view type, absl::string_view payload);
// Gives the PNG's first chunk of this type a wrong CRC.
std::string WithWrongCrc(std::string png, absl::string_view type);
// Inserts `chunk` after the IHDR of the PNG.
std::string WithChunk(const std::string& png, absl::string_view chunk);

std::string EncodeWebp(const image::RgbImage& image, bool lossless);
// Encodes a lossy WebP. Each pixel's alpha is between 254 - `noise` and 254.
std::string EncodeWebpWithAlpha(int width, int height, int noise);

}  // namespace sfmamba::server

#endif  // SFMAMBA_TESTS_SERVER_PICTURE_H_
