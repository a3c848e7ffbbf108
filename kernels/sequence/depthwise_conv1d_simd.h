// Computes the depthwise convolution by vectors of type V, one channel per
// lane. depthwise_conv1d_isa.cc includes this header and is compiled once for
// each instruction set, with a different V.
#ifndef SFMAMBA_KERNELS_SEQUENCE_DEPTHWISE_CONV1D_SIMD_H_
#define SFMAMBA_KERNELS_SEQUENCE_DEPTHWISE_CONV1D_SIMD_H_

#include "kernels/sequence/depthwise_conv1d.h"
#include "kernels/simd/simd_math.h"
#include "kernels/simd/vec_pair.h"

namespace sfmamba::kernels {
namespace {

// Computes token i from the taps [from, to) only. The function is inlined so
// that the loop is unrolled if `from` and `to` are constants. It takes `args`
// by value so that the compiler need not reload its members after each store to
// y.
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
    if (args.silu) v = OverOnePlusExp2(v, v * V::Set(-kLog2E));
    StoreLanes(v, y + c, lanes);
  });
}

// Computes token i of the sequence [begin, end) from the taps that lie inside
// the sequence.
template <typename V, typename T>
void ConvolveAnyToken(const DepthwiseConv1dArgs<T>& args, int64_t begin,
                      int64_t end, int64_t i) {
  const int64_t before = args.left - (i - begin);
  const int64_t inside = args.left + (end - i);
  ConvolveToken<V>(args, i, before > 0 ? static_cast<int>(before) : 0,
                   inside < args.taps ? static_cast<int>(inside) : args.taps);
}

// Computes the tokens i .. i+3. All taps of these tokens must lie inside the
// sequence. The four tokens share the loaded weights and neighbours, and the
// computations of four SiLUs overlap.
template <typename V, int kTaps, typename T>
inline __attribute__((always_inline)) void ConvolveFourTokens(
    const DepthwiseConv1dArgs<T> args, int64_t i) {
  using Four = VecPair<VecPair<V>>;
  const T* x = args.x + (i - args.left) * args.x_stride;
  T* y = args.y + i * args.y_stride;
  ForEachVector<V>(args.channels, [=](int64_t c, int lanes) {
    V bias = V::Set(0.0f);
    if (args.bias != nullptr) bias = LoadLanes<V>(args.bias + c, lanes);
    V near[kTaps + 3];
    for (int j = 0; j < kTaps + 3; ++j) {
      near[j] = LoadLanes<V>(x + j * args.x_stride + c, lanes);
    }
    Four v = {{bias, bias}, {bias, bias}};
    for (int j = 0; j < kTaps; ++j) {
      const V w =
          LoadLanes<V>(args.weight + int64_t{j} * args.channels + c, lanes);
      const Four values = {{near[j], near[j + 1]}, {near[j + 2], near[j + 3]}};
      v = Fma(Four{{w, w}, {w, w}}, values, v);
    }
    if (args.silu) v = OverOnePlusExp2(v, v * Four::Set(-kLog2E));
    StoreLanes(v.low.low, y + c, lanes);
    StoreLanes(v.low.high, y + args.y_stride + c, lanes);
    StoreLanes(v.high.low, y + 2 * args.y_stride + c, lanes);
    StoreLanes(v.high.high, y + 3 * args.y_stride + c, lanes);
  });
}

// Computes the tokens [from, to). All taps of these tokens must lie inside the
// sequence.
template <typename V, int kTaps, typename T>
void ConvolveInner(const DepthwiseConv1dArgs<T>& args, int64_t from,
                   int64_t to) {
  for (; from + 4 <= to; from += 4) ConvolveFourTokens<V, kTaps>(args, from);
  for (; from < to; ++from) ConvolveToken<V>(args, from, 0, kTaps);
}

template <typename V, typename T>
void Convolve(const DepthwiseConv1dArgs<T>& args) {
  const int right = args.taps - 1 - args.left;
  for (int k = 0; k < args.sequences.count; ++k) {
    const int64_t begin = args.sequences.begin(k), end = args.sequences.end(k);
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
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_DEPTHWISE_CONV1D_SIMD_H_
