// Loads and stores tiles of tensors [rows, tokens] of any layout. A tile has a
// vector for each token, with one row per lane. Files that are compiled once
// for each instruction set include this header.
#ifndef SFMAMBA_KERNELS_PYTHON_TILES_H_
#define SFMAMBA_KERNELS_PYTHON_TILES_H_

#include <xmmintrin.h>

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/python/strided.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

// The maximum number of tokens in a tile.
constexpr int kTile = 32;

inline __m128 LoadFour(const float* p) { return _mm_loadu_ps(p); }
inline __m128 LoadFour(const BFloat16* p) {
  const __m128i half = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), half));
}
inline void StoreFour(__m128 four, float* p) { _mm_storeu_ps(p, four); }
inline void StoreFour(__m128 four, BFloat16* p) {
  float values[4];
  _mm_storeu_ps(values, four);
  for (int i = 0; i < 4; ++i) p[i] = BFloat16(values[i]);
}

// Reads a block of 4 x 4 values at `from` and writes the transposed block to
// `to`. Rows are `from_stride` values apart in the source and `to_stride`
// values apart in the destination.
template <typename From, typename To>
inline void TransposeFour(const From* from, int64_t from_stride, To* to,
                          int64_t to_stride) {
  __m128 a = LoadFour(from), b = LoadFour(from + from_stride),
         c = LoadFour(from + 2 * from_stride),
         d = LoadFour(from + 3 * from_stride);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  StoreFour(a, to);
  StoreFour(b, to + to_stride);
  StoreFour(c, to + 2 * to_stride);
  StoreFour(d, to + 3 * to_stride);
}

// Reads a tile of the rows row .. row + lanes - 1 and of `tokens` tokens, which
// begin at `token`. Lanes after the first `lanes` become 0.
template <typename V, typename T, typename Real>
inline void LoadTile(Strided<const T> x, int64_t row, int lanes, int64_t token,
                     int tokens, Real (*tile)[V::kWidth]) {
  const T* p = x.data + row * x.row + token * x.token;
  if (x.row == 1) {
    for (int i = 0; i < tokens; ++i) {
      LoadLanes<V>(p + i * x.token, lanes).Store(tile[i]);
    }
    return;
  }
  int i = 0;
  if constexpr (V::kWidth % 4 == 0) {
    if (x.token == 1 && lanes == V::kWidth) {
      for (; i + 4 <= tokens; i += 4) {
        for (int c = 0; c < lanes; c += 4) {
          TransposeFour(p + c * x.row + i, x.row, &tile[i][c], V::kWidth);
        }
      }
    }
  }
  for (; i < tokens; ++i) {
    for (int c = 0; c < V::kWidth; ++c) {
      tile[i][c] =
          c < lanes ? static_cast<Real>(p[c * x.row + i * x.token]) : Real{0};
    }
  }
}

// Writes a tile to x, to the same place from which LoadTile() reads it.
template <typename V, typename T, typename Real>
inline void StoreTile(const Real (*tile)[V::kWidth], Strided<T> x, int64_t row,
                      int lanes, int64_t token, int tokens) {
  T* p = x.data + row * x.row + token * x.token;
  int i = 0;
  if constexpr (V::kWidth % 4 == 0) {
    if (x.row == 1) {
      for (; i < tokens; ++i) {
        StoreLanes(V::Load(tile[i]), p + i * x.token, lanes);
      }
    } else if (x.token == 1 && lanes == V::kWidth) {
      for (; i + 4 <= tokens; i += 4) {
        for (int c = 0; c < lanes; c += 4) {
          TransposeFour(&tile[i][c], V::kWidth, p + c * x.row + i, x.row);
        }
      }
    }
  }
  for (; i < tokens; ++i) {
    for (int c = 0; c < lanes; ++c) {
      p[c * x.row + i * x.token] = static_cast<T>(tile[i][c]);
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PYTHON_TILES_H_
