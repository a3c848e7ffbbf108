// The convolution of rounded maps as templates over a vector type I of 32-bit
// integers. Files that are compiled for one instruction set include this header
// and choose I.
#ifndef SFMAMBA_KERNELS_LINEAR_INT8_CONVOLUTION_SIMD_H_
#define SFMAMBA_KERNELS_LINEAR_INT8_CONVOLUTION_SIMD_H_

#include <algorithm>
#include <cstdint>

#include "kernels/linear/gelu_simd.h"
#include "kernels/linear/int8_convolution.h"
#include "kernels/linear/int8_tiles_simd.h"

namespace sfmamba::kernels {
namespace {

// The maximum number of bytes of x that a block of output rows reads. This
// limit keeps the bytes in the L2 cache while they are multiplied by all
// weights.
constexpr int64_t kBlockMapBytes = 384 << 10;

struct Relu {
  template <typename V>
  V operator()(V v) const {
    return Max(V::Set(0.0f), v);
  }
};

struct Relu6 {
  template <typename V>
  V operator()(V v) const {
    return Min(V::Set(6.0f), Max(V::Set(0.0f), v));
  }
};

// Computes rows [begin, end) of the output maps, panel by panel. Rows are
// counted over all maps.
template <typename I, typename Activation>
void ConvolveBlock(const Int8ConvolutionArgs& args, int64_t begin, int64_t end,
                   Activation activation) {
  const int64_t margin = args.kernel / 2;
  const int64_t line = (args.width + 2 * margin) * args.in;
  const int64_t lines = args.height + 2 * margin;
  const int64_t y_height = (args.height + args.stride - 1) / args.stride;
  const int64_t y_width = (args.width + args.stride - 1) / args.stride;
  const int64_t depth = int64_t{args.kernel} * args.kernel * args.in;
  for (int64_t first = 0; first < args.out; first += kPanel<I>) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t map = row / y_height;
      const int64_t top = row % y_height * args.stride;
      const float scale = QuantizeScale(args.largest[map]).scale;
      const Int8Inputs inputs{args.kernel, args.kernel * args.in / kQuad,
                              args.x + (map * lines + top) * line,
                              int64_t{args.stride} * args.in, line};
      const Int8Results results{
          std::min<int64_t>(kPanel<I>, args.out - first),
          &scale,
          0,
          args.weights.scales + first,
          args.weights.excess + first,
          args.bias == nullptr ? nullptr : args.bias + first,
          args.add,
          args.y + row * y_width * args.y_stride + first,
          args.y_stride};
      MultiplyPanel<I>(y_width, inputs, args.weights.values + first * depth,
                       /*prefetch=*/false, results, activation);
    }
  }
}

template <typename I, typename Activation>
void Convolve(const Int8ConvolutionArgs& args, int64_t begin, int64_t end,
              Activation activation) {
  const int64_t row_bytes = int64_t{args.width} * args.in * args.stride;
  const int64_t most = std::max<int64_t>(1, kBlockMapBytes / row_bytes);
  const int64_t blocks = (end - begin + most - 1) / most;
  for (int64_t b = 0; b < blocks; ++b) {
    ConvolveBlock<I>(args, begin + (end - begin) * b / blocks,
                     begin + (end - begin) * (b + 1) / blocks, activation);
  }
}

template <typename I>
void Int8Convolution(const Int8ConvolutionArgs& args, int64_t begin,
                     int64_t end) {
  switch (args.activation) {
    case Int8Activation::kNone:
      return Convolve<I>(args, begin, end, NoActivation());
    case Int8Activation::kRelu:
      return Convolve<I>(args, begin, end, Relu());
    case Int8Activation::kRelu6:
      return Convolve<I>(args, begin, end, Relu6());
    case Int8Activation::kGeluTanh:
      return Convolve<I>(args, begin, end, GeluTanh());
  }
}

template <typename I>
void QuantizeMapRows(const QuantizeMapsArgs& args, int64_t begin, int64_t end) {
  const int64_t lines = args.height + 2 * args.margin;
  const int64_t edge = int64_t{args.margin} * args.channels;
  const int64_t inside = int64_t{args.width} * args.channels;
  for (int64_t row = begin; row < end; ++row) {
    uint8_t* const values = args.values + row * (inside + 2 * edge);
    const int64_t map = row / lines, y = row % lines - args.margin;
    if (y < 0 || y >= args.height) {
      std::fill_n(values, inside + 2 * edge, uint8_t{128});
      continue;
    }
    std::fill_n(values, edge, uint8_t{128});
    Quantize<I>(args.x + (map * args.height + y) * inside, inside,
                QuantizeScale(args.largest[map]).inverse, values + edge);
    std::fill_n(values + edge + inside, edge, uint8_t{128});
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_INT8_CONVOLUTION_SIMD_H_
