// The depthwise convolution as templates over a vector type V. Each lane of a
// vector holds one channel. Files that are compiled for one instruction set
// include this header and choose V.
#ifndef SFMAMBA_KERNELS_LINEAR_DEPTHWISE_CONVOLUTION_SIMD_H_
#define SFMAMBA_KERNELS_LINEAR_DEPTHWISE_CONVOLUTION_SIMD_H_

#include <algorithm>

#include "kernels/linear/depthwise_convolution.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

// The number of columns of a row that are computed together. They share the
// loaded weights.
constexpr int kColumns = 4;

// The taps [first, last) of the kernel that lie inside the map, in one
// direction. `begin` is the position of tap 0 in the map.
struct Taps {
  Taps(int64_t begin, int64_t size, int kernel)
      : first(static_cast<int>(std::max<int64_t>(0, -begin))),
        last(static_cast<int>(std::min<int64_t>(kernel, size - begin))) {}
  int first, last;
};

// Computes kCount columns of an output row, of which `column` is the first. The
// taps `across` lie inside the map for each of these columns. `top` is the
// input row that the first tap reads.
template <typename V, int kCount>
void ConvolveColumns(const DepthwiseConvolutionArgs& args, const float* map,
                     int64_t top, int64_t column, const Taps& across,
                     float* y) {
  const int kernel = args.kernel, channels = args.channels;
  const Taps down(top, args.height, kernel);
  const int64_t left = column * args.stride - kernel / 2;
  const int64_t step = int64_t{args.stride} * channels;
  const V low = V::Set(args.low), high = V::Set(args.high);
  ForEachVector<V>(channels, [&](int64_t c, int lanes) {
    V sums[kCount];
    const V bias = args.bias != nullptr ? LoadLanes<V>(args.bias + c, lanes)
                                        : V::Set(0.0f);
#pragma GCC unroll 4
    for (int i = 0; i < kCount; ++i) sums[i] = bias;
    for (int r = down.first; r < down.last; ++r) {
      const float* row = map + ((top + r) * args.width + left) * channels + c;
      const float* weights = args.weight + int64_t{r} * kernel * channels + c;
      for (int t = across.first; t < across.last; ++t) {
        const V weight = LoadLanes<V>(weights + int64_t{t} * channels, lanes);
        const float* x = row + int64_t{t} * channels;
#pragma GCC unroll 4
        for (int i = 0; i < kCount; ++i) {
          sums[i] = Fma(weight, LoadLanes<V>(x + i * step, lanes), sums[i]);
        }
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < kCount; ++i) {
      // A NaN stays a NaN, because it is the second argument of Max and Min.
      StoreLanes(Min(high, Max(low, sums[i])),
                 y + (column + i) * int64_t{channels} + c, lanes);
    }
  });
}

template <typename V>
void ConvolveRow(const DepthwiseConvolutionArgs& args, int64_t row) {
  const int64_t height = (args.height + args.stride - 1) / args.stride;
  const int64_t width = (args.width + args.stride - 1) / args.stride;
  const float* map =
      args.x + row / height * args.height * args.width * args.channels;
  const int64_t top = row % height * args.stride - args.kernel / 2;
  float* y = args.y + row * width * args.channels;
  const auto taps = [&](int64_t column) {
    return Taps(column * args.stride - args.kernel / 2, args.width,
                args.kernel);
  };
  const auto is_inside = [&](int64_t column) {
    const Taps across = taps(column);
    return across.first == 0 && across.last == args.kernel;
  };
  for (int64_t column = 0; column < width;) {
    const int64_t last = column + kColumns - 1;
    if (last < width && is_inside(column) && is_inside(last)) {
      ConvolveColumns<V, kColumns>(args, map, top, column, taps(column), y);
      column += kColumns;
    } else {
      ConvolveColumns<V, 1>(args, map, top, column, taps(column), y);
      ++column;
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_DEPTHWISE_CONVOLUTION_SIMD_H_
