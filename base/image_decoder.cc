#include "base/image_decoder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/jpeg_decoder.h"
#include "base/orientation.h"
#include "base/png_decoder.h"
#include "base/webp_decoder.h"

namespace sfmamba::base {
namespace {

// JPEG's coefficients take 2 bytes each, of up to 4 components.
constexpr int64_t kJpegBytesPerPixel = 8;

int ScaledSide(int side, int eighths) { return (side * eighths + 7) / 8; }

// The smallest scale that keeps both sides at `min_side`, in eighths.
int JpegScale(const ImageHeader& header, int min_side) {
  if (min_side <= 0) return 8;
  const int side = std::min(header.width, header.height);
  int eighths = 1;
  while (eighths < 8 && ScaledSide(side, eighths) < min_side) ++eighths;
  return eighths;
}

}  // namespace

absl::StatusOr<RgbImage> DecodeImage(absl::string_view bytes,
                                     const ImageLimits& limits,
                                     bool apply_orientation, int min_side,
                                     const DecodeWatch& watch) {
  const absl::StatusOr<ImageHeader> header = ReadImageHeader(bytes, limits);
  if (!header.ok()) return header.status();
  const int eighths =
      header->format == ImageFormat::kJpeg ? JpegScale(*header, min_side) : 8;
  RgbImage image;
  image.width = ScaledSide(header->width, eighths);
  image.height = ScaledSide(header->height, eighths);
  image.data.resize(size_t{3} * image.width * image.height);
  absl::Status status;
  switch (header->format) {
    case ImageFormat::kJpeg:
      status = DecodeJpeg(bytes, eighths, image.width, image.height,
                          kJpegBytesPerPixel * limits.max_pixels, watch,
                          image.data.data());
      break;
    case ImageFormat::kPng:
      status =
          DecodePng(bytes, image.width, image.height, watch, image.data.data());
      break;
    case ImageFormat::kWebp:
      status = DecodeWebp(bytes, watch, image);
      break;
  }
  if (!status.ok()) return status;
  if (apply_orientation) image = Orient(std::move(image), header->orientation);
  if (watch.Expired()) return watch.status();
  return image;
}

}  // namespace sfmamba::base
