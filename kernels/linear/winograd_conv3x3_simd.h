// The transforms before and after the products, over a vector type V with a
// channel in each lane. The files of one instruction set include this header
// and choose V.
#ifndef SFMAMBA_KERNELS_LINEAR_WINOGRAD_CONV3X3_SIMD_H_
#define SFMAMBA_KERNELS_LINEAR_WINOGRAD_CONV3X3_SIMD_H_

#include "kernels/linear/gelu_simd.h"
#include "kernels/linear/winograd_conv3x3.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

// The method's points: 0, +-a, +-b and infinity.
constexpr float kA = kWinogradA, kB = kWinogradB;
constexpr float kA2 = kA * kA, kB2 = kB * kB;

// Computes to = B^T from.
template <typename V>
inline void TransformInput(const V from[6], V to[6]) {
  const V sum = V::Set(-kA2 - kB2), product = V::Set(kA2 * kB2);
  const V even_a = Fma(V::Set(-kB2), from[2], from[4]);
  const V odd_a = V::Set(kA) * Fma(V::Set(-kB2), from[1], from[3]);
  const V even_b = Fma(V::Set(-kA2), from[2], from[4]);
  const V odd_b = V::Set(kB) * Fma(V::Set(-kA2), from[1], from[3]);
  to[0] = Fma(product, from[0], Fma(sum, from[2], from[4]));
  to[1] = even_a + odd_a;
  to[2] = even_a - odd_a;
  to[3] = even_b + odd_b;
  to[4] = even_b - odd_b;
  to[5] = Fma(product, from[1], Fma(sum, from[3], from[5]));
}

// Computes to = A^T from.
template <typename V>
inline void TransformOutput(const V from[6], V to[4]) {
  const V even_a = from[1] + from[2], even_b = from[3] + from[4];
  const V odd_a = V::Set(kA) * (from[1] - from[2]);
  const V odd_b = V::Set(kB) * (from[3] - from[4]);
  to[0] = from[0] + (even_a + even_b);
  to[1] = odd_a + odd_b;
  to[2] = Fma(V::Set(kA2), even_a, V::Set(kB2) * even_b);
  to[3] = from[5] + Fma(V::Set(kA2), odd_a, V::Set(kB2) * odd_b);
}

template <typename V>
void WinogradInput(const WinogradConv3x3Args& args,
                   const WinogradBlock& block) {
  for (int64_t t = 0; t < block.count; ++t) {
    const WinogradTile tile = WinogradTileAt(args, block.first + t);
    const float* pixels[6][6];
    for (int i = 0; i < 6; ++i) {
      for (int j = 0; j < 6; ++j) {
        pixels[i][j] = WinogradPixel(args, tile.map, tile.row + i - 1,
                                     tile.column + j - 1, block.padding);
      }
    }
    float* to = block.inputs + t * args.in;
    ForEachVector<V>(args.in, [&](int64_t c, int lanes) {
      V half[6][6];  // B^T d, computed column by column.
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) {
        V column[6];
#pragma GCC unroll 6
        for (int i = 0; i < 6; ++i) {
          column[i] = LoadLanes<V>(pixels[i][j] + c, lanes);
        }
        V transformed[6];
        TransformInput(column, transformed);
#pragma GCC unroll 6
        for (int i = 0; i < 6; ++i) half[i][j] = transformed[i];
      }
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) {
        V row[6];
        TransformInput(half[i], row);
#pragma GCC unroll 6
        for (int j = 0; j < 6; ++j) {
          StoreLanes(row[j], to + (6 * i + j) * block.input_stride + c, lanes);
        }
      }
    });
  }
}

// The other activations; GeluTanh is in gelu_simd.h.
struct Identity {
  template <typename V>
  V operator()(V v) const {
    return v;
  }
};

struct Relu {
  template <typename V>
  V operator()(V v) const {
    return Max(V::Set(0), v);
  }
};

template <typename V, typename F>
void WinogradOutput(const WinogradConv3x3Args& args, const WinogradBlock& block,
                    F activation) {
  for (int64_t t = 0; t < block.count; ++t) {
    const WinogradTile tile = WinogradTileAt(args, block.first + t);
    const int rows = args.height - tile.row < 4 ? args.height - tile.row : 4;
    const int columns =
        args.width - tile.column < 4 ? args.width - tile.column : 4;
    const float* from = block.outputs + t * args.out;
    float* y = args.y + ((tile.map * args.height + tile.row) * args.width +
                         tile.column) *
                            args.out;
    ForEachVector<V>(args.out, [&](int64_t c, int lanes) {
      V half[4][6];
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) {
        V column[6];
#pragma GCC unroll 6
        for (int i = 0; i < 6; ++i) {
          column[i] =
              LoadLanes<V>(from + (6 * i + j) * block.output_stride + c, lanes);
        }
        V transformed[4];
        TransformOutput(column, transformed);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) half[i][j] = transformed[i];
      }
      const V bias =
          args.bias == nullptr ? V::Set(0) : LoadLanes<V>(args.bias + c, lanes);
      for (int i = 0; i < rows; ++i) {
        V row[4];
        TransformOutput(half[i], row);
        for (int j = 0; j < columns; ++j) {
          float* to = y + (i * args.width + j) * int64_t{args.out} + c;
          V value = activation(row[j] + bias);
          if (args.add) value = LoadLanes<V>(to, lanes) + value;
          StoreLanes(value, to, lanes);
        }
      }
    });
  }
}

template <typename V>
void WinogradOutput(const WinogradConv3x3Args& args,
                    const WinogradBlock& block) {
  switch (args.activation) {
    case WinogradActivation::kNone:
      return WinogradOutput<V>(args, block, Identity());
    case WinogradActivation::kRelu:
      return WinogradOutput<V>(args, block, Relu());
    case WinogradActivation::kGeluTanh:
      return WinogradOutput<V>(args, block, GeluTanh());
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_WINOGRAD_CONV3X3_SIMD_H_
