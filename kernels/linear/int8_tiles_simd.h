// Products of rounded values as templates over a vector type I of 32-bit
// integers. The outputs are computed in tiles. A tile has kTileRows rows and
// the outputs of one panel, which are two vectors. Files that are compiled for
// one instruction set include this header and choose I.
#ifndef SFMAMBA_KERNELS_LINEAR_INT8_TILES_SIMD_H_
#define SFMAMBA_KERNELS_LINEAR_INT8_TILES_SIMD_H_

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/linear/int8_gemm.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

// The number of inputs that one instruction multiplies for each output. They
// are called a quad.
constexpr int64_t kQuad = 4;
constexpr int64_t kLine = 64;  // Bytes in a cache line.

// The number of rows in a tile. The sums, two vectors of weights and one vector
// of x take all vector registers.
template <typename I>
constexpr int kTileRows = I::kWidth == 8 ? 6 : 14;

template <typename I>
constexpr int kPanel = 2 * I::kWidth;

// The inputs of some rows. The inputs of a row are divided into `runs` runs. A
// run is contiguous and consists of `quads` quads.
struct Int8Inputs {
  int64_t runs, quads;  // The number of runs in a row, and of quads in a run.
  const uint8_t* x;     // Rows are x_stride apart, runs of a row run_stride.
  int64_t x_stride, run_stride;
};

// Cache lines to prefetch while a tile is computed. One line is prefetched with
// each quad of the first run, so `count` is at most the number of quads.
struct NextLines {
  const int8_t* first = nullptr;
  int64_t count = 0;
};

// Computes the sums of kRows rows for the first kVectors vectors of a panel's
// outputs. Subtracts `excess` (see Int8Weights) and writes the sums to
// `sums_out` [kRows, kPanel]. The sums stay in registers only if the compiler
// unrolls every loop over them.
template <typename I, int kRows, int kVectors>
void SumRows(const Int8Inputs& inputs, const int8_t* weights,
             const int32_t* excess, const NextLines& next, int32_t* sums_out) {
  // x[i] + j * stride is the address of row 4 i + j. One address register
  // serves four rows, because an instruction can add a multiple of `stride` to
  // it.
  constexpr int kBases = (kRows + 3) / 4;
  const int64_t stride = inputs.x_stride, three = 3 * stride;
  const uint8_t* x[kBases];
  I sums[kRows][kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const I start = I::Zero() - I::Load(excess + v * I::kWidth);
#pragma GCC unroll 14
    for (int r = 0; r < kRows; ++r) sums[r][v] = start;
  }
  const auto add_quad = [&]() __attribute__((always_inline)) {
    I weight[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      weight[v] = I::Load(weights + v * I::kWidth * kQuad);
    }
    weights += kPanel<I> * kQuad;
#pragma GCC unroll 14
    for (int r = 0; r < kRows; ++r) {
      const int64_t offset = r % 4 == 3 ? three : r % 4 * stride;
      const I quad = I::Repeat(x[r / 4] + offset);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = AddProducts(sums[r][v], quad, weight[v]);
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < kBases; ++i) x[i] += kQuad;
  };
  int64_t next_lines = next.count;
  for (int64_t run = 0; run < inputs.runs; ++run) {
#pragma GCC unroll 4
    for (int i = 0; i < kBases; ++i) {
      x[i] = inputs.x + run * inputs.run_stride + 4 * i * stride;
    }
    for (int64_t k = 0; k < next_lines; ++k) {
      _mm_prefetch(next.first + k * kLine, _MM_HINT_T1);
      add_quad();
    }
    for (int64_t k = next_lines; k < inputs.quads; ++k) add_quad();
    next_lines = 0;
  }
#pragma GCC unroll 14
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v].Store(sums_out + r * kPanel<I> + v * I::kWidth);
    }
  }
}

// Calls SumRows() for `rows` rows. `rows` is 1 to kRows.
template <typename I, int kRows, int kVectors>
void SumUpTo(int64_t rows, const Int8Inputs& inputs, const int8_t* weights,
             const int32_t* excess, const NextLines& next, int32_t* sums) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      return SumUpTo<I, kRows - 1, kVectors>(rows, inputs, weights, excess,
                                             next, sums);
    }
  }
  SumRows<I, kRows, kVectors>(inputs, weights, excess, next, sums);
}

// The arguments of Finish(), which turns the sums of a panel's first `columns`
// outputs into results.
struct Int8Results {
  int64_t columns;
  const float* x_scales;  // The scales of the rows, x_scale_stride apart.
  int64_t x_scale_stride;
  const float* scales;    // [columns] or more.
  const int32_t* excess;  // [columns] or more.
  const float* bias;      // [columns] or null.
  bool add;
  float* y;  // [rows, columns], rows y_stride apart
  int64_t y_stride;
};

// Multiplies the sums by their scales, adds the bias, applies the activation,
// and writes the results to y or adds them to y.
template <typename I, typename Activation>
void Finish(int64_t rows, const int32_t* sums, const Int8Results& results,
            Activation activation) {
  using V = typename I::Floats;
  ForEachVector<V>(results.columns, [&](int64_t c, int lanes) {
    const V scale = V::Load(results.scales + c);
    const V bias = results.bias == nullptr
                       ? V::Set(0.0f)
                       : LoadLanes<V>(results.bias + c, lanes);
    for (int64_t r = 0; r < rows; ++r) {
      const V x_scale = V::Set(results.x_scales[r * results.x_scale_stride]);
      const I sum = I::Load(sums + r * kPanel<I> + c);
      V value = activation(Fma(ToFloats(sum) * x_scale, scale, bias));
      float* const y = results.y + r * results.y_stride + c;
      if (results.add) value = LoadLanes<V>(y, lanes) + value;
      StoreLanes(value, y, lanes);
    }
  });
}

struct NoActivation {
  template <typename V>
  V operator()(V v) const {
    return v;
  }
};

// Computes a panel's outputs for `rows` rows, in tiles of nearly equal height
// because small tiles are slower. If `prefetch` is true, prefetches the weights
// of the next panel meanwhile.
template <typename I, typename Activation>
void MultiplyPanel(int64_t rows, Int8Inputs inputs, const int8_t* weights,
                   bool prefetch, Int8Results results, Activation activation) {
  alignas(64) int32_t sums[kTileRows<I> * kPanel<I>];
  const int64_t tiles = (rows + kTileRows<I> - 1) / kTileRows<I>;
  const int64_t lines = inputs.runs * inputs.quads * kPanel<I> * kQuad / kLine;
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t height = rows * (t + 1) / tiles - rows * t / tiles;
    NextLines next;
    if (prefetch) {
      const int64_t line = lines * t / tiles;
      next.first = weights + (lines + line) * kLine;
      next.count = std::min(inputs.quads, lines * (t + 1) / tiles - line);
    }
    if (results.columns <= I::kWidth) {
      SumUpTo<I, kTileRows<I>, 1>(height, inputs, weights, results.excess, next,
                                  sums);
    } else {
      SumUpTo<I, kTileRows<I>, 2>(height, inputs, weights, results.excess, next,
                                  sums);
    }
    Finish<I>(height, sums, results, activation);
    inputs.x += height * inputs.x_stride;
    results.x_scales += height * results.x_scale_stride;
    results.y += height * results.y_stride;
  }
}

// Returns the largest magnitude in x, or a NaN if a value is not finite.
template <typename V>
float LargestMagnitude(const float* x, int64_t count) {
  V largest = V::Set(0.0f);
  ForEachVector<V>(count, [&](int64_t k, int lanes) {
    largest = MaxMagnitude(largest, Abs(LoadLanes<V>(x + k, lanes)));
  });
  const V limit = V::Set(std::numeric_limits<float>::max());
  return V::All(LessEqual(largest, limit))
             ? Largest(largest)
             : std::numeric_limits<float>::quiet_NaN();
}

// Writes each x * inverse, rounded to an integer, plus 128.
template <typename I>
void Quantize(const float* x, int64_t count, float inverse, uint8_t* values) {
  using V = typename I::Floats;
  ForEachVector<V>(count, [&](int64_t k, int lanes) {
    const I rounded = I::Round(LoadLanes<V>(x + k, lanes) * V::Set(inverse));
    if (lanes == V::kWidth) return rounded.StoreBytes(values + k);
    uint8_t bytes[V::kWidth];
    rounded.StoreBytes(bytes);
    std::copy_n(bytes, lanes, values + k);
  });
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_INT8_TILES_SIMD_H_
