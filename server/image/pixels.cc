#include "server/image/pixels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "opencv2/core.hpp"
#include "server/errors/error.h"
#include "server/errors/reasons.h"

namespace sfmamba::image {
namespace {

// Bytes of a pixel, for NV12 in its Y plane.
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

uint8_t Clamp(int value) { return std::clamp(value, 0, 255); }

// BT.601, video range, in 8-bit fixed point.
void YuvToRgb(int y, int u, int v, uint8_t* rgb) {
  const int c = 298 * (y - 16) + 128, d = u - 128, e = v - 128;
  rgb[0] = Clamp((c + 409 * e) >> 8);
  rgb[1] = Clamp((c - 100 * d - 208 * e) >> 8);
  rgb[2] = Clamp((c + 516 * d) >> 8);
}

void Nv12RowToRgb(const uint8_t* luma, const uint8_t* chroma, int width,
                  uint8_t* rgb) {
  for (int x = 0; x < width; ++x) {
    const uint8_t* uv = chroma + (x & ~1);  // Two pixels share a pair.
    YuvToRgb(luma[x], uv[0], uv[1], rgb + 3 * x);
  }
}

// Copies the bytes at `red`, `green` and `blue` of each pixel of `size` bytes.
void RowToRgb(const uint8_t* row, int width, int size, int red, int green,
              int blue, uint8_t* rgb) {
  for (int x = 0; x < width; ++x, row += size, rgb += 3) {
    rgb[0] = row[red];
    rgb[1] = row[green];
    rgb[2] = row[blue];
  }
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

float HalfToFloat(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const int exponent = (half >> 10) & 31;
  const uint32_t mantissa = half & 0x3FFu;
  if (exponent == 31) return FromBits(sign | 0x7F800000u | mantissa << 13);
  if (exponent != 0) {
    return FromBits(sign | uint32_t(exponent + 112) << 23 | mantissa << 13);
  }
  // Subnormal: the mantissa counts units of 2^-24.
  return std::copysign(std::ldexp(static_cast<float>(mantissa), -24),
                       FromBits(sign | 0x3F800000u));
}

// Reads `count` little-endian elements; this machine is little-endian.
std::vector<float> ToFloats(const InputTensor& tensor, int64_t count) {
  std::vector<float> values(count);
  const char* data = tensor.data.data();
  if (tensor.type == InputTensor::Type::kFloat32) {
    std::memcpy(values.data(), data, count * sizeof(float));
    return values;
  }
  const bool half = tensor.type == InputTensor::Type::kFloat16;
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, data + 2 * i, sizeof(bits));
    values[i] = half ? HalfToFloat(bits) : FromBits(uint32_t{bits} << 16);
  }
  return values;
}

// Whether the model takes a tensor of these sides.
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
  if (std::max(width, height) > limits.max_side ||
      width * height > limits.max_pixels) {
    return server::AtField(
        ".width",
        server::ImageTooLarge(absl::StrCat(
            "got ", width, " x ", height, " pixels, expected at most ",
            limits.max_pixels, ", and sides of at most ", limits.max_side)));
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
  const int width = pixels.width, height = pixels.height;
  const int64_t stride = Stride(pixels);
  const uint8_t* data = reinterpret_cast<const uint8_t*>(pixels.data.data());
  RgbImage image{width, height, {}};
  image.data.resize(int64_t{3} * width * height);
  for (int y = 0; y < height; ++y) {
    const uint8_t* row = data + y * stride;
    uint8_t* rgb = image.data.data() + int64_t{3} * width * y;
    switch (pixels.format) {
      case PixelBuffer::Format::kBgr8:
        RowToRgb(row, width, 3, 2, 1, 0, rgb);
        break;
      case PixelBuffer::Format::kRgba8:
        RowToRgb(row, width, 4, 0, 1, 2, rgb);
        break;
      case PixelBuffer::Format::kBgra8:
        RowToRgb(row, width, 4, 2, 1, 0, rgb);
        break;
      case PixelBuffer::Format::kGray8:
        RowToRgb(row, width, 1, 0, 0, 0, rgb);
        break;
      case PixelBuffer::Format::kNv12:
        Nv12RowToRgb(row, data + (height + y / 2) * stride, width, rgb);
        break;
      case PixelBuffer::Format::kRgb8:
        RowToRgb(row, width, 3, 0, 1, 2, rgb);
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
    // A hostile shape may have millions of entries.
    const auto end = shape.begin() + std::min<size_t>(shape.size(), 8);
    return server::InvalidField(
        ".shape", absl::StrCat("got [", absl::StrJoin(shape.begin(), end, ", "),
                               end == shape.end() ? "" : ", ...",
                               "], expected ", ExpectedShape(model)));
  }
  return CheckLength(tensor.data.size(), 3 * shape[1] * shape[2] * size);
}

absl::StatusOr<ImageBuffer> ToImageBuffer(const InputTensor& tensor) {
  ImageBuffer buffer;
  buffer.height = tensor.shape[1];
  buffer.width = tensor.shape[2];
  const int64_t plane = int64_t{buffer.height} * buffer.width;
  if (tensor.type == InputTensor::Type::kUint8) {
    buffer.pixels.resize(3 * plane);
    std::array<cv::Mat, 3> planes;
    for (int c = 0; c < 3; ++c) {
      // OpenCV has no view of constant pixels.
      planes[c] = cv::Mat(buffer.height, buffer.width, CV_8UC1,
                          const_cast<char*>(tensor.data.data() + c * plane));
    }
    cv::Mat merged(buffer.height, buffer.width, CV_8UC3, buffer.pixels.data());
    cv::merge(planes.data(), planes.size(), merged);
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
