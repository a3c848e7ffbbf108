#include <algorithm>
#include <cstdint>

#include "kernels/cuda/device_rows.h"
#include "kernels/pixels/device_pixels.h"
#include "kernels/pixels/image_normalize_cuda.h"
#include "simt/simt.h"

namespace sfmamba::kernels {
namespace {

constexpr int kColumns = 32, kRows = 8;  // Threads in a block, along x and y.
// The number of rows that a block writes. It is so large that filling the
// block's pixel table takes a small part of the time.
constexpr int kBlockRows = 16;

// The memory layout of four neighbouring pixels in y.
enum class Layout {
  kPlanes,  // The values of each channel are contiguous and aligned.
  kPixels,  // All twelve values are contiguous and aligned.
  kAny,
};

template <typename T>
struct Parameters {
  CudaImage images[kImages];
  const uint8_t* planar;
  int height, width;
  T* y;
  int64_t image_stride, row_stride, pixel_stride, channel_stride;
  float mean[3], std[3];
  Layout layout;
};

// Writes the pixels j to j+3 of the row that begins at `row`. Skips pixels
// beyond the width.
template <typename T>
__device__ __forceinline__ void WritePixels(
    const Parameters<T>& parameters, T* row, int j,
    const float (&values)[3 * kPixels]) {
  T* y = row + j * parameters.pixel_stride;
  const bool whole = j + kPixels <= parameters.width;
  if (whole && parameters.layout == Layout::kPlanes) {
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      const float plane[kPixels] = {values[c], values[3 + c], values[6 + c],
                                    values[9 + c]};
      StoreFloats(y + c * parameters.channel_stride, plane);
    }
  } else if (whole && parameters.layout == Layout::kPixels) {
#pragma unroll
    for (int n = 0; n < 3; ++n) {
      const float four[4] = {values[4 * n], values[4 * n + 1],
                             values[4 * n + 2], values[4 * n + 3]};
      StoreFloats(y + 4 * n, four);
    }
  } else {
#pragma unroll
    for (int b = 0; b < 3 * kPixels; ++b) {
      if (j + b / 3 >= parameters.width) continue;
      y[b / 3 * parameters.pixel_stride + b % 3 * parameters.channel_stride] =
          simt::FromFloat<T>(values[b]);
    }
  }
}

// Each blockIdx.x writes kBlockRows rows, and blockIdx.y is the image. Each
// threadIdx.x handles four pixels at a time, and threadIdx.y counts rows.
template <typename T>
__global__ void NormalizeKernel(Parameters<T> parameters) {
  __shared__ PixelTable table;
  FillPixelTable(parameters.mean, parameters.std,
                 threadIdx.y * kColumns + threadIdx.x, kColumns * kRows,
                 &table);
  __syncthreads();
  const CudaImage image = parameters.images[blockIdx.y];
  const bool planar =
      parameters.planar != nullptr && parameters.planar[blockIdx.y] != 0;
  const int first = blockIdx.x * kBlockRows;
  const int last = min(first + kBlockRows, parameters.height);
  for (int i = first + threadIdx.y; i < last; i += kRows) {
    T* row = parameters.y + blockIdx.y * parameters.image_stride +
             i * parameters.row_stride;
    for (int j = threadIdx.x * kPixels; j < parameters.width;
         j += kColumns * kPixels) {
      float values[3 * kPixels];
      ReadPixels(image, planar, table, i, j, values);
      WritePixels(parameters, row, j, values);
    }
  }
}

template <typename T>
Layout LayoutOf(const ImageNormalizeCudaArgs<T>& args) {
  const bool rows = InVectors<kPixels>(args.y, args.row_stride, kPixels) &&
                    args.image_stride % kPixels == 0;
  if (rows && args.pixel_stride == 1 && args.channel_stride % kPixels == 0) {
    return Layout::kPlanes;
  }
  if (rows && args.pixel_stride == 3 && args.channel_stride == 1) {
    return Layout::kPixels;
  }
  return Layout::kAny;
}

}  // namespace

template <typename T>
absl::Status ImageNormalizeCuda(const ImageNormalizeCudaArgs<T>& args,
                                CudaStream stream) {
  Parameters<T> parameters{};
  parameters.height = args.height;
  parameters.width = args.width;
  parameters.image_stride = args.image_stride;
  parameters.row_stride = args.row_stride;
  parameters.pixel_stride = args.pixel_stride;
  parameters.channel_stride = args.channel_stride;
  std::copy_n(args.mean.begin(), 3, parameters.mean);
  std::copy_n(args.std.begin(), 3, parameters.std);
  parameters.layout = LayoutOf(args);
  for (int first = 0; first < args.count; first += kImages) {
    const int count = std::min(kImages, args.count - first);
    std::copy_n(args.images + first, count, parameters.images);
    if (args.planar != nullptr) parameters.planar = args.planar + first;
    parameters.y = args.y + first * args.image_stride;
    const absl::Status launched =
        simt::Launch("image_normalize", NormalizeKernel<T>,
                     dim3((args.height + kBlockRows - 1) / kBlockRows, count),
                     dim3(kColumns, kRows), stream, parameters);
    if (!launched.ok()) return launched;
  }
  return absl::OkStatus();
}

template absl::Status ImageNormalizeCuda(const ImageNormalizeCudaArgs<float>&,
                                         CudaStream);
template absl::Status ImageNormalizeCuda(
    const ImageNormalizeCudaArgs<BFloat16>&, CudaStream);
template absl::Status ImageNormalizeCuda(const ImageNormalizeCudaArgs<Float16>&,
                                         CudaStream);

}  // namespace sfmamba::kernels
