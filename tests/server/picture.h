#ifndef SFMAMBA_TESTS_SERVER_PICTURE_H_
#define SFMAMBA_TESTS_SERVER_PICTURE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/image/image.h"

struct jpeg_compress_struct;

namespace sfmamba::server {

// Smooth, with each channel different: survives lossy compression.
image::RgbImage Gradient(int width, int height);
// Grey, with a rectangle of pure red.
image::RgbImage WithRed(int width, int height, const image::PixelRect& red);
// The part of `image` inside `rect`, which is inside the picture.
image::RgbImage Crop(const image::RgbImage& image,
                     const image::PixelRect& rect);
// The largest difference of a byte; 256 if the sizes differ.
int MaxDifference(const image::RgbImage& a, const image::RgbImage& b);

// `adjust` may change parameters before compression starts; `components` bytes
// a pixel are read from `data`: 1 is grey, 3 RGB, 4 CMYK.
std::string EncodeJpeg(int width, int height, int components,
                       const uint8_t* data,
                       std::function<void(jpeg_compress_struct&)> adjust = {});
std::string EncodeJpeg(const image::RgbImage& image);
// The JPEG with `bytes` before its first `marker`, such as "\xFF\xDB".
std::string Before(std::string jpeg, absl::string_view marker,
                   absl::string_view bytes);
// An APP1 segment that holds `exif`.
std::string App1(absl::string_view exif);
// The JPEG with an APP1 segment after its start that holds `exif`.
std::string WithExif(const std::string& jpeg, absl::string_view exif);
// An EXIF block whose only entry is the orientation.
std::string ExifOrientation(int orientation, bool little_endian);

struct PngOptions {
  int color_type = 2;  // RGB, as the PNG specification numbers it.
  int bit_depth = 8;
  bool interlaced = false;
};
// `data` holds rows as the PNG does: bits packed, 16 bits big endian. Palette
// pictures get a palette of 4 colours: PaletteColor(0..3).
std::string EncodePng(int width, int height, const PngOptions& options,
                      const std::string& data);
std::string EncodePng(const image::RgbImage& image);
uint8_t PaletteColor(int index, int channel);
// A chunk with its length and CRC.
std::string PngChunk(absl::string_view type, absl::string_view payload);
// The PNG with a wrong CRC of its first chunk of a type.
std::string WithWrongCrc(std::string png, absl::string_view type);
// The PNG with `chunk` between IHDR and what follows.
std::string WithChunk(const std::string& png, absl::string_view chunk);

std::string EncodeWebp(const image::RgbImage& image, bool lossless);
// A lossy one; each pixel's alpha is anything from 254 - `noise` to 254.
std::string EncodeWebpWithAlpha(int width, int height, int noise);

}  // namespace sfmamba::server

#endif  // SFMAMBA_TESTS_SERVER_PICTURE_H_
