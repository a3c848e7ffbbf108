// The product of rounded rows as templates over a vector type I of 32-bit
// integers. Files that are compiled for one instruction set include this header
// and choose I.
#ifndef SFMAMBA_KERNELS_LINEAR_INT8_GEMM_SIMD_H_
#define SFMAMBA_KERNELS_LINEAR_INT8_GEMM_SIMD_H_

#include <algorithm>
#include <cstdint>

#include "kernels/linear/gelu_simd.h"
#include "kernels/linear/int8_gemm.h"
#include "kernels/linear/int8_tiles_simd.h"

namespace sfmamba::kernels {
namespace {

// The maximum number of bytes of x in a block of rows. This limit keeps the
// block in the L2 cache while it is multiplied by all weights.
constexpr int64_t kBlockBytes = 384 << 10;

template <typename I, typename Activation>
void Multiply(const Int8GemmArgs& args, Activation activation) {
  const int64_t quads = (args.in + kQuad - 1) / kQuad;
  const int64_t stride = QuantizedStride(args.in);
  const int64_t most = std::max<int64_t>(kTileRows<I>, kBlockBytes / stride);
  const int64_t blocks = (args.rows + most - 1) / most;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = args.rows * b / blocks;
    const int64_t rows = args.rows * (b + 1) / blocks - begin;
    const Int8Inputs inputs{1, quads, args.x_values + begin * stride, stride,
                            0};
    for (int64_t first = 0; first < args.out; first += kPanel<I>) {
      const Int8Results results{
          std::min<int64_t>(kPanel<I>, args.out - first),
          args.x_scales + begin,
          1,
          args.weights.scales + first,
          args.weights.excess + first,
          args.bias == nullptr ? nullptr : args.bias + first,
          args.add,
          args.y + begin * args.y_stride + first,
          args.y_stride};
      MultiplyPanel<I>(rows, inputs,
                       args.weights.values + first * quads * kQuad,
                       /*prefetch=*/true, results, activation);
    }
  }
}

template <typename I>
void Int8Gemm(const Int8GemmArgs& args) {
  args.gelu ? Multiply<I>(args, GeluErf()) : Multiply<I>(args, NoActivation());
}

template <typename I>
void QuantizeRows(const QuantizeArgs& args) {
  using V = typename I::Floats;
  const int64_t stride = QuantizedStride(args.in);
  for (int64_t i = 0; i < args.rows; ++i) {
    const float* const x = args.x + i * args.x_stride;
    uint8_t* const values = args.values + i * stride;
    const QuantizeScale scale(LargestMagnitude<V>(x, args.in));
    args.scales[i] = scale.scale;
    Quantize<I>(x, args.in, scale.inverse, values);
    std::fill(values + args.in, values + stride, uint8_t{128});
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_INT8_GEMM_SIMD_H_
