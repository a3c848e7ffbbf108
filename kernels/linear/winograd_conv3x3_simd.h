// Winograd's transforms before and after the matrix products, as templates over
// a vector type V. Each lane of a vector holds one channel. Files that are
// compiled for one instruction set include this header and choose V.
#ifndef SFMAMBA_KERNELS_LINEAR_WINOGRAD_CONV3X3_SIMD_H_
#define SFMAMBA_KERNELS_LINEAR_WINOGRAD_CONV3X3_SIMD_H_

#include "kernels/linear/gelu_simd.h"
#include "kernels/linear/winograd_conv3x3.h"
#include "kernels/linear/winograd_matrices.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

// Method4 and Method7 implement F(4, 3) and F(7, 3) with the points of
// winograd_matrices.h. In B^T, the rows of the points q and -q differ only in
// the signs of every second coefficient. So both rows are computed from one sum
// over the even coefficients and one sum over the odd coefficients. The columns
// of A^T have the same property.

struct Method4 {
  static constexpr int kOutputs = 4, kInputs = 6;
  static constexpr float kA = kWinograd4[0], kB = kWinograd4[1];
  static constexpr float kA2 = kA * kA, kB2 = kB * kB;

  // Transforms inputs: to = B^T * from.
  template <typename V>
  static inline void Input(const V* from, V* to) {
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

  // Transforms sums of products to outputs: to = A^T * from.
  template <typename V>
  static inline void Output(const V* from, V* to) {
    const V even_a = from[1] + from[2], even_b = from[3] + from[4];
    const V odd_a = V::Set(kA) * (from[1] - from[2]);
    const V odd_b = V::Set(kB) * (from[3] - from[4]);
    to[0] = from[0] + (even_a + even_b);
    to[1] = odd_a + odd_b;
    to[2] = Fma(V::Set(kA2), even_a, V::Set(kB2) * even_b);
    to[3] = from[5] + Fma(V::Set(kA2), odd_a, V::Set(kB2) * odd_b);
  }
};

// The number of pairs of points, q and -q, of F(7, 3).
constexpr int kPairs = 4;

// The coefficients of the product of y - q^2 over all points q > 0 except
// number `left_out`. at[k] is the coefficient of y^k.
struct Squares {
  constexpr explicit Squares(int left_out) : at{1, 0, 0, 0, 0} {
    for (int j = 0; j < kPairs; ++j) {
      if (j == left_out) continue;
      for (int k = kPairs; k >= 0; --k) {
        at[k] = (k > 0 ? at[k - 1] : 0) - kWinograd7[j] * kWinograd7[j] * at[k];
      }
    }
  }
  double at[kPairs + 1];
};
constexpr Squares kSquares[kPairs + 1] = {Squares(0), Squares(1), Squares(2),
                                          Squares(3), Squares(kPairs)};

struct Method7 {
  static constexpr int kOutputs = 7, kInputs = 9;

  template <typename V>
  static inline void Input(const V* from, V* to) {
#pragma GCC unroll 4
    for (int k = 0; k < kPairs; ++k) {
      const double* c = kSquares[k].at;
      V even = Fma(V::Set(c[2]), from[4], from[6]);
      V odd = Fma(V::Set(c[2]), from[5], from[7]);
      even = Fma(V::Set(c[1]), from[2], even);
      odd = Fma(V::Set(c[1]), from[3], odd);
      even = V::Set(kWinograd7[k]) * Fma(V::Set(c[0]), from[0], even);
      odd = Fma(V::Set(c[0]), from[1], odd);
      to[2 * k] = odd + even;
      to[2 * k + 1] = odd - even;
    }
    const double* c = kSquares[kPairs].at;
    const V low = Fma(V::Set(c[0]), from[0], V::Set(c[1]) * from[2]);
    const V high = Fma(V::Set(c[3]), from[6], from[8]);
    to[8] = low + Fma(V::Set(c[2]), from[4], high);
  }

  template <typename V>
  static inline void Output(const V* from, V* to) {
    V even[kPairs], odd[kPairs];
#pragma GCC unroll 4
    for (int k = 0; k < kPairs; ++k) {
      const V square = V::Set(kWinograd7[k] * kWinograd7[k]);
      even[k] = from[2 * k] + from[2 * k + 1];
      odd[k] = V::Set(kWinograd7[k]) * (from[2 * k] - from[2 * k + 1]);
      for (int j = 0; j < kOutputs; j += 2) {
        to[j] = k == 0 ? even[k] : to[j] + even[k];
        if (j + 1 < kOutputs) to[j + 1] = k == 0 ? odd[k] : to[j + 1] + odd[k];
        even[k] = square * even[k];
        odd[k] = square * odd[k];
      }
    }
    to[6] = to[6] + from[8];
  }
};

template <typename V, typename Method>
void WinogradInput(const WinogradConv3x3Args& args,
                   const WinogradBlock& block) {
  constexpr int n = Method::kInputs;
  for (int64_t t = 0; t < block.count; ++t) {
    const WinogradTile tile = WinogradTileAt(args, block.first + t);
    const float* pixels[n][n];
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        pixels[i][j] = WinogradPixel(args, tile.map, tile.row + i - 1,
                                     tile.column + j - 1, block.padding);
      }
    }
    float* to = block.inputs + t * args.in;
    ForEachVector<V>(args.in, [&](int64_t c, int lanes) {
      V half[n][n];  // B^T d, computed column by column.
#pragma GCC unroll 9
      for (int j = 0; j < n; ++j) {
        V column[n];
#pragma GCC unroll 9
        for (int i = 0; i < n; ++i) {
          column[i] = LoadLanes<V>(pixels[i][j] + c, lanes);
        }
        V transformed[n];
        Method::Input(column, transformed);
#pragma GCC unroll 9
        for (int i = 0; i < n; ++i) half[i][j] = transformed[i];
      }
#pragma GCC unroll 9
      for (int i = 0; i < n; ++i) {
        V row[n];
        Method::Input(half[i], row);
#pragma GCC unroll 9
        for (int j = 0; j < n; ++j) {
          StoreLanes(row[j], to + (n * i + j) * block.input_stride + c, lanes);
        }
      }
    });
  }
}

template <typename V>
void WinogradInput(const WinogradConv3x3Args& args,
                   const WinogradBlock& block) {
  if (args.side == Method4::kOutputs) {
    WinogradInput<V, Method4>(args, block);
  } else {
    WinogradInput<V, Method7>(args, block);
  }
}

// The activations kNone and kRelu. GeluTanh is in gelu_simd.h.
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

template <typename V, typename Method, typename F>
void WinogradOutput(const WinogradConv3x3Args& args, const WinogradBlock& block,
                    F activation) {
  constexpr int m = Method::kOutputs, n = Method::kInputs;
  for (int64_t t = 0; t < block.count; ++t) {
    const WinogradTile tile = WinogradTileAt(args, block.first + t);
    const int rows = args.height - tile.row < m ? args.height - tile.row : m;
    const int columns =
        args.width - tile.column < m ? args.width - tile.column : m;
    const float* from = block.outputs + t * args.out;
    float* y = args.y + ((tile.map * args.height + tile.row) * args.width +
                         tile.column) *
                            args.out;
    ForEachVector<V>(args.out, [&](int64_t c, int lanes) {
      V half[m][n];
#pragma GCC unroll 9
      for (int j = 0; j < n; ++j) {
        V column[n];
#pragma GCC unroll 9
        for (int i = 0; i < n; ++i) {
          column[i] =
              LoadLanes<V>(from + (n * i + j) * block.output_stride + c, lanes);
        }
        V transformed[m];
        Method::Output(column, transformed);
#pragma GCC unroll 9
        for (int i = 0; i < m; ++i) half[i][j] = transformed[i];
      }
      const V bias =
          args.bias == nullptr ? V::Set(0) : LoadLanes<V>(args.bias + c, lanes);
      for (int i = 0; i < rows; ++i) {
        V row[m];
        Method::Output(half[i], row);
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

template <typename V, typename Method>
void WinogradOutput(const WinogradConv3x3Args& args,
                    const WinogradBlock& block) {
  switch (args.activation) {
    case WinogradActivation::kNone:
      return WinogradOutput<V, Method>(args, block, Identity());
    case WinogradActivation::kRelu:
      return WinogradOutput<V, Method>(args, block, Relu());
    case WinogradActivation::kGeluTanh:
      return WinogradOutput<V, Method>(args, block, GeluTanh());
  }
}

template <typename V>
void WinogradOutput(const WinogradConv3x3Args& args,
                    const WinogradBlock& block) {
  if (args.side == Method4::kOutputs) {
    WinogradOutput<V, Method4>(args, block);
  } else {
    WinogradOutput<V, Method7>(args, block);
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_WINOGRAD_CONV3X3_SIMD_H_
