// The packed product as templates over a vector type V. The outputs are
// computed in tiles. A tile has kTileRows rows and the outputs of one panel,
// which are two vectors. Files that are compiled for one instruction set
// include this header and choose V.
#ifndef SFMAMBA_KERNELS_LINEAR_PACKED_GEMM_SIMD_H_
#define SFMAMBA_KERNELS_LINEAR_PACKED_GEMM_SIMD_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/linear/packed_gemm.h"

namespace sfmamba::kernels {
namespace {

// The maximum number of inputs and of rows in a block. The limit of inputs
// keeps a panel's weights and a few rows of x in the L1 cache. The limit of
// rows keeps x in the L2 cache.
constexpr int64_t kBlockDepth = 384, kBlockRows = 240;

// A part of a matrix product: some inputs of each row, multiplied by their
// weights in one panel. The block of the first inputs adds the bias. It
// overwrites y, unless args.add is true. All other blocks add to y.
struct Block {
  int64_t depth;   // The number of inputs.
  const float* x;  // [rows, depth], rows x_stride apart
  int64_t x_stride;
  const float* weights;  // [depth, panel]
  const float* bias;     // [panel] or null.
  bool add;
  float* y;  // [rows, panel], rows y_stride apart
  int64_t y_stride;
  // The first cache line to prefetch during the product. One line is prefetched
  // with each input, because the CPU would stall if many lines were prefetched
  // at once. `next_lines` is the number of lines, at most `depth`.
  const float* next;
  int64_t next_lines;
};

constexpr int64_t kLine = 64 / sizeof(float);  // Floats in a cache line.

// Computes kRows rows of a block, for the first kVectors vectors of the panel's
// outputs. The sums stay in registers only if the compiler unrolls every loop
// over them.
template <typename V, int kRows, int kVectors>
void MultiplyRows(const Block& block) {
  const float *x = block.x, *weights = block.weights;
  const int64_t depth = block.depth, x_stride = block.x_stride;
  V sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[r][v] = V::Set(0.0f);
  }
  const auto add_input = [&](int64_t k) __attribute__((always_inline)) {
    V weight[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      weight[v] = V::Load(weights + v * V::kWidth);
    }
    weights += 2 * V::kWidth;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const V value = V::Set(x[r * x_stride + k]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = Fma(value, weight[v], sums[r][v]);
      }
    }
  };
  for (int64_t k = 0; k < block.next_lines; ++k) {
    _mm_prefetch(reinterpret_cast<const char*>(block.next + k * kLine),
                 _MM_HINT_T1);
    add_input(k);
  }
  for (int64_t k = block.next_lines; k < depth; ++k) add_input(k);
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const bool biased = block.bias != nullptr;
    const V bias = biased ? V::Load(block.bias + v * V::kWidth) : V::Set(0.0f);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      float* y = block.y + r * block.y_stride + v * V::kWidth;
      if (biased) sums[r][v] = sums[r][v] + bias;
      if (block.add) sums[r][v] = V::Load(y) + sums[r][v];
      sums[r][v].Store(y);
    }
  }
}

// Calls MultiplyRows() for `rows` rows. `rows` is 1 to kRows.
template <typename V, int kRows, int kVectors>
void MultiplyUpTo(int64_t rows, const Block& block) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      return MultiplyUpTo<V, kRows - 1, kVectors>(rows, block);
    }
  }
  MultiplyRows<V, kRows, kVectors>(block);
}

// The number of rows in a tile. With AVX2 the sums take 12 of the 16 vector
// registers. With AVX-512 they take only 16 of 32, because more rows would need
// more pointers than there are general-purpose registers.
template <typename V>
constexpr int kTileRows = V::kWidth == 8 ? 6 : 8;

// Computes a tile of an incomplete last panel, which has only `columns`
// outputs. Uses padded copies of y and the bias, because vectors would reach
// beyond their ends.
template <typename V>
void MultiplyNarrow(int64_t rows, int64_t columns, Block block) {
  constexpr int kPanel = 2 * V::kWidth;
  float y[kTileRows<V> * kPanel] = {}, bias[kPanel] = {};
  float* const to = block.y;
  const int64_t to_stride = block.y_stride;
  for (int64_t c = 0; c < columns; ++c) {
    if (block.bias != nullptr) bias[c] = block.bias[c];
    for (int64_t r = 0; r < rows && block.add; ++r) {
      y[r * kPanel + c] = to[r * to_stride + c];
    }
  }
  if (block.bias != nullptr) block.bias = bias;
  block.y = y;
  block.y_stride = kPanel;
  if (columns <= V::kWidth) {
    MultiplyUpTo<V, kTileRows<V>, 1>(rows, block);
  } else {
    MultiplyUpTo<V, kTileRows<V>, 2>(rows, block);
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      to[r * to_stride + c] = y[r * kPanel + c];
    }
  }
}

// Computes `rows` rows of a block, in tiles of nearly equal height because
// small tiles are slower. Meanwhile prefetches `next`, the weights of the next
// block.
template <typename V>
void MultiplyBlock(int64_t rows, int64_t columns, const Block& block,
                   const float* next) {
  constexpr int kPanel = 2 * V::kWidth;
  const int64_t tiles = (rows + kTileRows<V> - 1) / kTileRows<V>;
  const int64_t lines = block.depth * kPanel / kLine;
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t first = rows * t / tiles;
    const int64_t count = rows * (t + 1) / tiles - first;
    Block tile = block;
    const int64_t line = lines * t / tiles;
    tile.next = next + line * kLine;
    tile.next_lines = lines * (t + 1) / tiles - line;
    if (tile.next_lines > block.depth) tile.next_lines = block.depth;
    tile.x += first * block.x_stride;
    tile.y += first * block.y_stride;
    if (columns == kPanel) {
      MultiplyUpTo<V, kTileRows<V>, 2>(count, tile);
    } else if (columns == V::kWidth) {
      MultiplyUpTo<V, kTileRows<V>, 1>(count, tile);
    } else {
      MultiplyNarrow<V>(count, columns, tile);
    }
  }
}

// Computes all outputs of at most kBlockRows rows.
template <typename V>
void MultiplyBlockOfRows(const PackedGemmArgs& args) {
  constexpr int kPanel = 2 * V::kWidth;
  const int64_t blocks = (args.in + kBlockDepth - 1) / kBlockDepth;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = args.in * b / blocks;
    Block block;
    block.depth = args.in * (b + 1) / blocks - begin;
    block.x = args.x + begin;
    block.x_stride = args.x_stride;
    block.add = args.add || b > 0;
    block.y_stride = args.y_stride;
    for (int64_t first = 0; first < args.out; first += kPanel) {
      const int64_t left = args.out - first;
      block.weights = args.weights + first * args.in + begin * kPanel;
      block.bias = b == 0 && args.bias != nullptr ? args.bias + first : nullptr;
      block.y = args.y + first;
      MultiplyBlock<V>(args.rows, left < kPanel ? left : kPanel, block,
                       block.weights + args.in * kPanel);
    }
  }
}

template <typename V>
void PackedGemm(const PackedGemmArgs& args) {
  const int64_t blocks = (args.rows + kBlockRows - 1) / kBlockRows;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = args.rows * b / blocks;
    PackedGemmArgs part = args;
    part.rows = args.rows * (b + 1) / blocks - begin;
    part.x += begin * args.x_stride;
    part.y += begin * args.y_stride;
    MultiplyBlockOfRows<V>(part);
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_PACKED_GEMM_SIMD_H_
