#include "server/image/image.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "base/image_decoder.h"
#include "base/orientation.h"
#include "server/errors/reasons.h"
#include "server/image/resample.h"

namespace sfmamba::image {
namespace {

// The colour of letterbox padding. It is a grey near the mean colour of
// photographs, so it is about zero after normalization.
constexpr uint8_t kPadding[3] = {124, 116, 104};

// Returns the offset at which `part` pixels are centred in `size` pixels. An
// offset that ends in .5 is rounded to the nearest even number.
int CenterOffset(int size, int part) {
  return static_cast<int>(std::nearbyint((size - part) / 2.0));
}

// Returns the size to which a picture of `width` x `height` pixels is resized.
// Also returns the window, which is a rectangle of the resized picture. The
// model sees only the pixels in the window.
ResizeWindow WindowOf(int width, int height, const PreprocessOptions& options) {
  const int short_side = std::min(width, height);
  const int long_side = std::max(width, height);
  // A side that is computed from the aspect ratio is rounded down.
  const int64_t target = options.resize_size;
  ResizeWindow window;
  window.width = target;
  window.height = target;
  switch (options.mode) {
    case ResizeMode::kStretch:
      break;
    case ResizeMode::kCenterCrop: {
      const int other = target * long_side / short_side;
      (width > height ? window.width : window.height) = other;
      break;
    }
    case ResizeMode::kLetterbox: {
      const int other = std::max<int64_t>(1, target * short_side / long_side);
      (width < height ? window.width : window.height) = other;
      break;
    }
  }
  window.columns = std::min(window.width, options.size);
  window.rows = std::min(window.height, options.size);
  window.left = CenterOffset(window.width, window.columns);
  window.top = CenterOffset(window.height, window.rows);
  return window;
}

// Pads the window's `pixels` to a square of side `size`. If the window already
// has this size, the pixels are not changed.
ImageBuffer ToSquare(std::vector<uint8_t> pixels, const ResizeWindow& window,
                     int size) {
  ImageBuffer buffer;
  buffer.width = buffer.height = size;
  if (window.columns == size && window.rows == size) {
    buffer.pixels = std::move(pixels);
    return buffer;
  }
  std::vector<uint8_t> square;
  square.reserve(size_t{3} * size * size);
  while (square.size() < size_t{3} * size * size) {
    square.insert(square.end(), kPadding, kPadding + 3);
  }
  const int left = CenterOffset(size, window.columns);
  const int top = CenterOffset(size, window.rows);
  for (int y = 0; y < window.rows; ++y) {
    memcpy(&square[size_t{3} * ((top + y) * size + left)],
           &pixels[size_t{3} * y * window.columns], size_t{3} * window.columns);
  }
  buffer.pixels = std::move(square);
  return buffer;
}

}  // namespace

absl::Status DecodeError(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnimplemented:
      return server::ImageFormatUnsupported(status.message());
    case absl::StatusCode::kOutOfRange:
      return server::ImageTooLarge(status.message());
    case absl::StatusCode::kCancelled:
      return status;
    case absl::StatusCode::kDeadlineExceeded:
      return server::ImageDecodeTimeout(status.message());
    default:
      return server::ImageDecodeFailed(status.message());
  }
}

PictureSize OrientedSize(const ImageHeader& header, bool apply_orientation) {
  if (apply_orientation && base::SwapsSides(header.orientation)) {
    return {header.width, header.height};
  }
  return {header.height, header.width};
}

PixelRect ToPixels(const CropRect& rect, const PictureSize& size) {
  const auto edges = [](float low, float high, int size) {
    const int begin = std::min<int>(std::lround(low * size), size - 1);
    // A crop that is rounded to zero pixels still gets one pixel.
    const int end = std::max<int>(std::lround(high * size), begin + 1);
    return std::make_pair(begin, std::min(end, size));
  };
  const auto [left, right] = edges(rect.x_min, rect.x_max, size.width);
  const auto [top, bottom] = edges(rect.y_min, rect.y_max, size.height);
  return {left, top, right - left, bottom - top};
}

CropRect SeenPart(const PictureSize& picture,
                  const PreprocessOptions& options) {
  const ResizeWindow window = WindowOf(picture.width, picture.height, options);
  const float size = options.size;
  CropRect part;
  part.x_min = (window.left - CenterOffset(options.size, window.columns)) /
               static_cast<float>(window.width);
  part.y_min = (window.top - CenterOffset(options.size, window.rows)) /
               static_cast<float>(window.height);
  part.x_max = part.x_min + size / window.width;
  part.y_max = part.y_min + size / window.height;
  return part;
}

absl::StatusOr<ImageBuffer> Preprocess(const RgbImage& image,
                                       const PreprocessOptions& options,
                                       const DecodeWatch& watch,
                                       std::optional<PixelRect> part) {
  const PixelRect from =
      part.value_or(PixelRect{0, 0, image.width, image.height});
  const size_t stride = size_t{3} * image.width;
  const ResizeWindow window = WindowOf(from.width, from.height, options);
  absl::StatusOr<std::vector<uint8_t>> resized =
      ResizeBicubic(&image.data[stride * from.top + 3 * from.left], from.width,
                    from.height, window, watch, stride);
  if (!resized.ok()) return DecodeError(resized.status());
  ImageBuffer input = ToSquare(*std::move(resized), window, options.size);
  input.original_height = from.height;
  input.original_width = from.width;
  return input;
}

absl::StatusOr<RowsInput> DecodeAndPreprocess(absl::string_view bytes,
                                              const ImageHeader& header,
                                              int min_side,
                                              const PreprocessOptions& options,
                                              const DecodeWatch& watch) {
  const base::DecodeNeeds picture =
      base::NeedsOf(header, /*apply_orientation=*/false, min_side);
  const ResizeWindow window = WindowOf(picture.width, picture.height, options);
  RowResizer resizer(picture.width, picture.height, window);
  const absl::Status status =
      base::DecodeRows(bytes, header, min_side, watch,
                       [&resizer](int y) { return resizer.Row(y); });
  if (!status.ok()) return DecodeError(status);
  RowsInput input;
  input.image = ToSquare(resizer.Finish(), window, options.size);
  input.image.original_height = picture.height;
  input.image.original_width = picture.width;
  input.preprocess = resizer.spent();
  return input;
}

}  // namespace sfmamba::image
