#ifndef SFMAMBA_SERVER_IMAGE_IMAGE_SOURCE_H_
#define SFMAMBA_SERVER_IMAGE_IMAGE_SOURCE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/image/image.h"

namespace sfmamba::image {

// This file describes an image of a request before it is decoded. The bytes are
// views of the transport's message. The message must outlive these views.

// A JPEG, PNG or still WebP file.
struct EncodedImage {
  absl::string_view bytes;
};

// Uncompressed 8-bit pixels.
struct PixelBuffer {
  enum class Format {
    kRgb8,
    kBgr8,
    kRgba8,  // Alpha is dropped, not blended.
    kBgra8,
    kGray8,
    // NV12 stores a plane of Y values, followed by a plane of UV pairs. The
    // width and the height must be even.
    kNv12,
  };
  int width = 0;
  int height = 0;
  Format format = Format::kRgb8;
  int row_stride_bytes = 0;  // 0 if rows are contiguous.
  absl::string_view data;
};

// A preprocessed model input.
struct InputTensor {
  // Elements of type kUint8 are pixels that are not normalized. Elements of the
  // other types are normalized.
  enum class Type { kFloat32, kFloat16, kBfloat16, kUint8 };
  Type type = Type::kFloat32;
  absl::Span<const int64_t> shape;  // Must be {3, height, width}.
  absl::string_view data;  // The elements, little-endian and row-major.
  // If the tensor's bytes arrived in several pieces, these are the pieces in
  // order, and `data` is not used. Each piece has at least one byte.
  std::vector<absl::string_view> pieces;
};

// A part of a decoded picture.
struct PictureRegion {
  const RgbImage* picture = nullptr;
  PixelRect rect;  // Must lie inside the picture and not be empty.
};

struct ImageSource {
  std::variant<std::monostate, EncodedImage, PixelBuffer, InputTensor,
               PictureRegion>
      source;
  std::optional<CropRect> crop;   // A part of the oriented picture.
  bool apply_orientation = true;  // If true, the EXIF orientation is applied.
  bool full_size = false;         // If true, a JPEG is decoded at full scale.
  // If the image's bytes arrived in several pieces, this function copies them
  // into the buffer to which `source` points. If the function is set, it must
  // be called before the bytes are read. Until then, only the number of bytes
  // is valid. The server calls the function just before it decodes the image,
  // so it never copies the bytes of a refused request.
  std::function<void()> fetch;

  const EncodedImage* encoded() const {
    return std::get_if<EncodedImage>(&source);
  }
  const PixelBuffer* pixels() const {
    return std::get_if<PixelBuffer>(&source);
  }
  const PictureRegion* region() const {
    return std::get_if<PictureRegion>(&source);
  }
  const InputTensor* tensor() const {
    return std::get_if<InputTensor>(&source);
  }
};

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_IMAGE_SOURCE_H_
