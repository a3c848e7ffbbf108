#include "server/image/image.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/reasons.h"
#include "server/image/jpeg_decoder.h"
#include "server/image/png_decoder.h"
#include "server/image/resample.h"
#include "webp/decode.h"

namespace sfmamba::image {
namespace {

// What letterboxing fills with, near the mean of photographs: about zero once
// normalised.
constexpr uint8_t kPadding[3] = {124, 116, 104};

// JPEG's coefficients take 2 bytes each, of up to 4 components.
constexpr int64_t kJpegBytesPerPixel = 8;

// Bytes of a WebP from one look at the watch to the next.
constexpr size_t kWatchedBytes = 64 << 10;

absl::Status DecodeFailed(const absl::Status& status,
                          const DecodeWatch& watch) {
  if (absl::IsDeadlineExceeded(status)) return DecodedTooSlowly(watch);
  return server::ImageDecodeFailed(status.message());
}

// Whether a WebP has as many bytes as its header says.
bool IsWhole(absl::string_view webp) {
  uint32_t size = 0;  // From the ninth byte on; little endian.
  for (int i = 3; i >= 0; --i) {
    size = size << 8 | static_cast<uint8_t>(webp[4 + i]);
  }
  return size <= webp.size() - 8;
}

absl::Status DecodeWebp(absl::string_view bytes, const DecodeWatch& watch,
                        RgbImage& image) {
  const std::unique_ptr<WebPIDecoder, void (*)(WebPIDecoder*)> decoder(
      WebPINewRGB(MODE_RGB, image.data.data(), image.data.size(),
                  3 * image.width),
      WebPIDelete);
  // Bit by bit the decoder would not miss a last byte.
  VP8StatusCode code =
      IsWhole(bytes) ? VP8_STATUS_SUSPENDED : VP8_STATUS_NOT_ENOUGH_DATA;
  for (size_t end = 0; code == VP8_STATUS_SUSPENDED && end < bytes.size();) {
    end = std::min(end + kWatchedBytes, bytes.size());
    code =
        decoder == nullptr
            ? VP8_STATUS_OUT_OF_MEMORY
            : WebPIUpdate(decoder.get(),
                          reinterpret_cast<const uint8_t*>(bytes.data()), end);
    if (watch.Expired()) return watch.status();
  }
  if (code == VP8_STATUS_OK) return absl::OkStatus();
  return absl::InvalidArgumentError("WebP: the data are truncated or corrupt");
}

int ScaledSide(int side, int eighths) { return (side * eighths + 7) / 8; }

// The smallest scale that keeps both sides at `min_side`, in eighths.
int JpegScale(const ImageHeader& header, int min_side) {
  if (min_side <= 0) return 8;
  const int side = std::min(header.width, header.height);
  int eighths = 1;
  while (eighths < 8 && ScaledSide(side, eighths) < min_side) ++eighths;
  return eighths;
}

// Whether an EXIF orientation turns the picture by a quarter.
bool SwapsSides(int orientation) { return orientation >= 5; }

// Source: EXIF 2.3, Orientation: where the stored first row and column belong.
RgbImage Orient(RgbImage image, int orientation) {
  if (orientation == 1) return image;
  const bool swap_sides = SwapsSides(orientation);
  const bool flip_x = orientation == 2 || orientation == 3 ||
                      orientation == 7 || orientation == 8;
  const bool flip_y = orientation == 3 || orientation == 4 ||
                      orientation == 6 || orientation == 7;
  RgbImage result;
  result.width = swap_sides ? image.height : image.width;
  result.height = swap_sides ? image.width : image.height;
  result.data.resize(image.data.size());
  uint8_t* out = result.data.data();
  for (int y = 0; y < result.height; ++y) {
    for (int x = 0; x < result.width; ++x, out += 3) {
      const int across = swap_sides ? y : x;  // In the stored picture.
      const int down = swap_sides ? x : y;
      const int from_x = flip_x ? image.width - 1 - across : across;
      const int from_y = flip_y ? image.height - 1 - down : down;
      memcpy(
          out,
          &image.data[size_t{3} * (size_t{1} * from_y * image.width + from_x)],
          3);
    }
  }
  return result;
}

// (size - part) / 2, halves rounded to the even integer.
int CenterOffset(int size, int part) {
  return static_cast<int>(std::nearbyint((size - part) / 2.0));
}

// The picture resized to width x height and cropped to the square of `size` in
// its middle; where it is smaller, padded around its middle.
ImageBuffer ResizeToSquare(const RgbImage& image, int width, int height,
                           int size) {
  ResizeWindow window;
  window.width = width;
  window.height = height;
  window.columns = std::min(width, size);
  window.rows = std::min(height, size);
  window.left = CenterOffset(width, window.columns);
  window.top = CenterOffset(height, window.rows);
  std::vector<uint8_t> pixels =
      ResizeBicubic(image.data.data(), image.width, image.height, window);

  ImageBuffer buffer;
  buffer.width = buffer.height = size;
  if (window.columns == size && window.rows == size) {
    buffer.pixels = std::move(pixels);
    return buffer;
  }
  buffer.pixels.reserve(size_t{3} * size * size);
  while (buffer.pixels.size() < size_t{3} * size * size) {
    buffer.pixels.insert(buffer.pixels.end(), kPadding, kPadding + 3);
  }
  const int left = CenterOffset(size, window.columns);
  const int top = CenterOffset(size, window.rows);
  for (int y = 0; y < window.rows; ++y) {
    memcpy(&buffer.pixels[size_t{3} * ((top + y) * size + left)],
           &pixels[size_t{3} * y * window.columns], size_t{3} * window.columns);
  }
  return buffer;
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
  if (!status.ok()) return DecodeFailed(status, watch);
  image = Orient(std::move(image), apply_orientation ? header->orientation : 1);
  if (watch.Expired()) return DecodedTooSlowly(watch);
  return image;
}

absl::Status DecodedTooSlowly(const DecodeWatch& watch) {
  return server::ImageDecodeTimeout(watch.status().message());
}

PictureSize OrientedSize(const ImageHeader& header, bool apply_orientation) {
  if (apply_orientation && SwapsSides(header.orientation)) {
    return {header.width, header.height};
  }
  return {header.height, header.width};
}

PixelRect ToPixels(const CropRect& rect, const PictureSize& size) {
  const auto edges = [](float low, float high, int size) {
    const int begin = std::min<int>(std::lround(low * size), size - 1);
    const int end = std::max<int>(std::lround(high * size), begin + 1);
    return std::make_pair(begin, std::min(end, size));
  };
  const auto [left, right] = edges(rect.x_min, rect.x_max, size.width);
  const auto [top, bottom] = edges(rect.y_min, rect.y_max, size.height);
  return {left, top, right - left, bottom - top};
}

RgbImage Crop(const RgbImage& image, const PixelRect& rect) {
  RgbImage result;
  result.width = rect.width;
  result.height = rect.height;
  result.data.reserve(size_t{3} * rect.width * rect.height);
  for (int y = rect.top; y < rect.top + rect.height; ++y) {
    const uint8_t* row =
        &image.data[size_t{3} * (size_t{1} * y * image.width + rect.left)];
    result.data.insert(result.data.end(), row, row + 3 * rect.width);
  }
  return result;
}

ImageBuffer Preprocess(const RgbImage& image,
                       const PreprocessOptions& options) {
  const int short_side = std::min(image.width, image.height);
  const int long_side = std::max(image.width, image.height);
  // The sides after resizing; both are cut off, not rounded.
  const int64_t target = options.resize_size;
  int width = target;
  int height = target;
  switch (options.mode) {
    case ResizeMode::kStretch:
      break;
    case ResizeMode::kCenterCrop: {
      const int other = target * long_side / short_side;
      (image.width > image.height ? width : height) = other;
      break;
    }
    case ResizeMode::kLetterbox: {
      const int other = std::max<int64_t>(1, target * short_side / long_side);
      (image.width < image.height ? width : height) = other;
      break;
    }
  }
  return ResizeToSquare(image, width, height, options.size);
}

}  // namespace sfmamba::image
