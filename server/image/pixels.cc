#include "server/image/pixels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "opencv2/core.hpp"
#include "opencv2/imgproc.hpp"
#include "server/errors/error.h"
#include "server/errors/reasons.h"
#include "server/image/keep_ratio.h"

namespace sfmamba::image {
namespace {

// Returns the number of bytes per pixel. For NV12, only the Y plane counts.
int PixelSize(PixelBuffer::Format format) {
  switch (format) {
    case PixelBuffer::Format::kRgb8:
    case PixelBuffer::Format::kBgr8:
      return 3;
    case PixelBuffer::Format::kRgba8:
    case PixelBuffer::Format::kBgra8:
      return 4;
    case PixelBuffer::Format::kGray8:
    case PixelBuffer::Format::kNv12:
      return 1;
  }
  return 0;
}

int64_t Stride(const PixelBuffer& pixels) {
  return pixels.row_stride_bytes != 0
             ? pixels.row_stride_bytes
             : int64_t{pixels.width} * PixelSize(pixels.format);
}

int ElementSize(InputTensor::Type type) {
  switch (type) {
    case InputTensor::Type::kFloat32:
      return 4;
    case InputTensor::Type::kFloat16:
    case InputTensor::Type::kBfloat16:
      return 2;
    case InputTensor::Type::kUint8:
      return 1;
  }
  return 0;
}

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Returns the pieces of memory that contain a tensor's bytes, in order.
absl::Span<const absl::string_view> PiecesOf(const InputTensor& tensor) {
  if (tensor.pieces.empty()) return absl::MakeConstSpan(&tensor.data, 1);
  return tensor.pieces;
}

// Copies all bytes of a tensor to `to`.
void CopyBytes(const InputTensor& tensor, void* to) {
  char* next = static_cast<char*>(to);
  for (const absl::string_view piece : PiecesOf(tensor)) {
    next = std::copy(piece.begin(), piece.end(), next);
  }
}

// Converts the `count` elements of a tensor to floats. The elements are
// little-endian. The CPU must be little-endian too.
std::vector<float> ToFloats(const InputTensor& tensor, int64_t count) {
  std::vector<float> values(count);
  if (tensor.type == InputTensor::Type::kFloat32) {
    CopyBytes(tensor, values.data());
    return values;
  }
  std::vector<char> joined(tensor.pieces.empty() ? 0 : 2 * count);
  if (!joined.empty()) CopyBytes(tensor, joined.data());
  const char* data = joined.empty() ? tensor.data.data() : joined.data();
  const bool half = tensor.type == InputTensor::Type::kFloat16;
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, data + 2 * i, sizeof(bits));
    values[i] = half ? float{cv::float16_t::fromBits(bits)}
                     : FromBits(uint32_t{bits} << 16);
  }
  return values;
}

// Returns true if the model accepts a tensor of this height and width.
bool Fits(int64_t height, int64_t width, const model::ModelConfig& model) {
  const int64_t low = std::min(height, width), high = std::max(height, width);
  if (model.resize == model::Resize::kKeepRatio) {
    return low >= 1 && low <= model.short_side && high <= model.long_side;
  }
  return low == model.image_size && high == model.image_size;
}

std::string ExpectedShape(const model::ModelConfig& model) {
  if (model.resize == model::Resize::kKeepRatio) {
    return absl::StrCat("[3, H, W] with sides of 1 to ", model.long_side,
                        ", the shorter at most ", model.short_side);
  }
  return absl::StrCat("[3, ", model.image_size, ", ", model.image_size, "]");
}

absl::Status CheckLength(int64_t got, int64_t expected) {
  if (got == expected) return absl::OkStatus();
  return server::InvalidField(
      ".data", absl::StrCat("got ", got, " bytes, expected ", expected));
}

}  // namespace

absl::Status ValidatePixels(const PixelBuffer& pixels,
                            const ImageLimits& limits) {
  const int size = PixelSize(pixels.format);
  const int64_t width = pixels.width, height = pixels.height;
  const bool nv12 = pixels.format == PixelBuffer::Format::kNv12;
  for (const auto& [field, side] :
       {std::make_pair(".width", width), std::make_pair(".height", height)}) {
    if (side <= 0) {
      return server::InvalidField(
          field, absl::StrCat("got ", side, ", expected a positive size"));
    }
    if (nv12 && side % 2 != 0) {
      return server::InvalidField(
          field, absl::StrCat("got ", side,
                              ", expected an even size, as the "
                              "format is NV12"));
    }
  }
  const absl::Status within = base::CheckImageSize(width, height, limits);
  if (!within.ok()) {
    return server::AtField(".width", server::ImageTooLarge(within.message()));
  }
  const int64_t stride = Stride(pixels);
  if (stride < width * size) {
    return server::InvalidField(
        ".row_stride_bytes",
        absl::StrCat("got ", stride, ", expected at least ", width * size));
  }
  return CheckLength(pixels.data.size(),
                     stride * (nv12 ? height / 2 * 3 : height));
}

RgbImage ToRgb(const PixelBuffer& pixels) {
  UseOneOpenCvThread();
  const int width = pixels.width, height = pixels.height;
  const size_t stride = Stride(pixels);
  // cv::Mat has no read-only form, so the code casts away const. It only reads
  // the pixels.
  char* const data = const_cast<char*>(pixels.data.data());
  const cv::Mat from(height, width, CV_8UC(PixelSize(pixels.format)), data,
                     stride);
  RgbImage image{width, height, {}};
  image.data.resize(size_t{3} * width * height);
  cv::Mat to(height, width, CV_8UC3, image.data.data());
  switch (pixels.format) {
    case PixelBuffer::Format::kRgb8:
      from.copyTo(to);
      break;
    case PixelBuffer::Format::kBgr8:
      cv::cvtColor(from, to, cv::COLOR_BGR2RGB);
      break;
    case PixelBuffer::Format::kRgba8:
      cv::cvtColor(from, to, cv::COLOR_RGBA2RGB);
      break;
    case PixelBuffer::Format::kBgra8:
      cv::cvtColor(from, to, cv::COLOR_BGRA2RGB);
      break;
    case PixelBuffer::Format::kGray8:
      cv::cvtColor(from, to, cv::COLOR_GRAY2RGB);
      break;
    case PixelBuffer::Format::kNv12: {
      const cv::Mat chroma(height / 2, width / 2, CV_8UC2,
                           data + height * stride, stride);
      cv::cvtColorTwoPlane(from, chroma, to, cv::COLOR_YUV2RGB_NV12);
      break;
    }
  }
  return image;
}

absl::Status ValidateTensor(const InputTensor& tensor,
                            const model::ModelConfig& model) {
  const int size = ElementSize(tensor.type);
  const auto& shape = tensor.shape;
  if (shape.size() != 3 || shape[0] != 3 || !Fits(shape[1], shape[2], model)) {
    // A malicious shape may have millions of entries. The error contains only
    // the first eight.
    const auto end = shape.begin() + std::min<size_t>(shape.size(), 8);
    return server::InvalidField(
        ".shape", absl::StrCat("got [", absl::StrJoin(shape.begin(), end, ", "),
                               end == shape.end() ? "" : ", ...",
                               "], expected ", ExpectedShape(model)));
  }
  int64_t bytes = 0;
  for (const absl::string_view piece : PiecesOf(tensor)) bytes += piece.size();
  return CheckLength(bytes, 3 * shape[1] * shape[2] * size);
}

absl::StatusOr<ImageBuffer> ToImageBuffer(const InputTensor& tensor,
                                          PixelPool* pool) {
  ImageBuffer buffer;
  buffer.height = tensor.shape[1];
  buffer.width = tensor.shape[2];
  const int64_t plane = int64_t{buffer.height} * buffer.width;
  if (tensor.type == InputTensor::Type::kUint8) {
    buffer.pixels = pool != nullptr ? pool->Take(3 * plane)
                                    : Pixels(std::vector<uint8_t>(3 * plane));
    CopyBytes(tensor, buffer.pixels.data());
    buffer.planar = true;
    return buffer;
  }
  buffer.values = ToFloats(tensor, 3 * plane);
  const auto bad =
      std::find_if_not(buffer.values.begin(), buffer.values.end(),
                       [](float value) { return std::isfinite(value); });
  if (bad != buffer.values.end()) {
    return server::InvalidField(
        ".data",
        absl::StrCat("got ", *bad, " as element ", bad - buffer.values.begin(),
                     ", expected finite values"));
  }
  return buffer;
}

}  // namespace sfmamba::image
