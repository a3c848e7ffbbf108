// The depthwise convolution over a vector type V, one lane a channel; for the
// files of one instruction set, which choose V.
#ifndef SFMAMBA_KERNELS_DEPTHWISE_CONV1D_SIMD_H_
#define SFMAMBA_KERNELS_DEPTHWISE_CONV1D_SIMD_H_

#include "kernels/depthwise_conv1d.h"
#include "kernels/simd_math.h"

namespace sfmamba {
namespace {

// Token i from taps [from, to) only. Inlined, so that constant taps unroll; by
// value, so that writing y does not make the compiler read the arguments again.
template <typename V, typename T>
inline __attribute__((always_inline)) void ConvolveToken(
    const DepthwiseConv1dArgs<T> args, int64_t i, int from, int to) {
  const T* x = args.x + (i - args.left) * args.x_stride;
  T* y = args.y + i * args.y_stride;
  ForEachVector<V>(args.channels, [=](int64_t c, int lanes) {
    V v = V::Set(0.0f);
    if (args.bias != nullptr) v = LoadLanes<V>(args.bias + c, lanes);
    for (int j = from; j < to; ++j) {
      const V weight =
          LoadLanes<V>(args.weight + int64_t{j} * args.channels + c, lanes);
      v = Fma(weight, LoadLanes<V>(x + j * args.x_stride + c, lanes), v);
    }
    if (args.silu) v = TimesSigmoid2(v, v * V::Set(kLog2E));
    StoreLanes(v, y + c, lanes);
  });
}

// Token i of the sequence [begin, end), from those taps that lie in it.
template <typename V, typename T>
void ConvolveAnyToken(const DepthwiseConv1dArgs<T>& args, int64_t begin,
                      int64_t end, int64_t i) {
  const int64_t before = args.left - (i - begin);
  const int64_t inside = args.left + (end - i);
  ConvolveToken<V>(args, i, before > 0 ? static_cast<int>(before) : 0,
                   inside < args.taps ? static_cast<int>(inside) : args.taps);
}

// Tokens [from, to), each with all of its kTaps taps.
template <typename V, int kTaps, typename T>
void ConvolveInner(const DepthwiseConv1dArgs<T>& args, int64_t from,
                   int64_t to) {
  for (int64_t i = from; i < to; ++i) ConvolveToken<V>(args, i, 0, kTaps);
}

template <typename V, typename T>
void Convolve(const DepthwiseConv1dArgs<T>& args) {
  const int right = args.taps - 1 - args.left;
  for (int k = 0; k < args.segments.count; ++k) {
    const int64_t begin = args.segments.begin(k), end = args.segments.end(k);
    int64_t i = begin;
    for (; i < end && i < begin + args.left; ++i) {
      ConvolveAnyToken<V>(args, begin, end, i);
    }
    const int64_t inner_end = end - right;
    if (i < inner_end && args.taps == 3) {
      ConvolveInner<V, 3>(args, i, inner_end);
      i = inner_end;
    } else if (i < inner_end && args.taps == 4) {
      ConvolveInner<V, 4>(args, i, inner_end);
      i = inner_end;
    }
    for (; i < end; ++i) ConvolveAnyToken<V>(args, begin, end, i);
  }
}

}  // namespace
}  // namespace sfmamba

#endif  // SFMAMBA_KERNELS_DEPTHWISE_CONV1D_SIMD_H_
