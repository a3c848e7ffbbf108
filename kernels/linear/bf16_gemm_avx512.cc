// The packed product of bf16 values with AVX512-BF16. A tile has kTileRows rows
// by one panel, which is two vectors of outputs. In each lane, the instruction
// vdpbf16ps adds two products to a sum.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/linear/bf16_rows.h"
#include "kernels/linear/gelu_simd.h"
#include "kernels/linear/packed_gemm.h"
#include "kernels/simd/vec16.h"

namespace sfmamba::kernels {
namespace {

constexpr int64_t kPanel = 2 * kLanes;
// The number of rows in a tile. The sums take 24 of the 32 vector registers.
constexpr int kTileRows = 12;
// The maximum size of a block, in pairs of inputs and in rows. The limit of
// pairs keeps a panel's weights and a tile's inputs in the L1 cache. The limit
// of rows keeps a block's inputs in the L2 cache.
constexpr int64_t kBlockPairs = 192, kBlockRows = 252;
// The distance between the rows of a block's inputs, in pairs. It is 13 cache
// lines. Since 13 is odd, the first lines of a tile's rows are in different
// sets of the L1 cache. If the distance were a multiple of the page size (4
// KiB), all rows would compete for the same few sets.
constexpr int64_t kRowPairs = kBlockPairs + 16;

// Two bf16 values.
using Pair = uint32_t;

// A part of a product: the products of some inputs with their weights in one
// panel.
struct Block {
  int64_t pairs;
  const Pair* x;        // [rows, pairs], rows kRowPairs apart
  const Pair* weights;  // [pairs, kPanel]
  const float* bias;    // [kPanel] or null.
  bool add;             // Adds to y instead of overwriting it.
  float* y;             // [rows, kPanel], rows y_stride apart
  int64_t y_stride;
  // The first cache line to prefetch during the product, or null. One line is
  // prefetched with each pair of inputs, because many prefetches at once stall.
  // `next_lines` is the number of lines, at most `pairs`.
  const char* next;
  int64_t next_lines;
};

constexpr int64_t kLine = 64;  // Bytes in a cache line.
// The maximum number of cache lines that a tile prefetches at once. More
// prefetches at once would stall the CPU.
constexpr int64_t kLinesAtOnce = 16;

void Prefetch(const char* line) { _mm_prefetch(line, _MM_HINT_T1); }

void PrefetchToWrite(const float* y, int vectors) {
  for (int v = 0; v < vectors; ++v) __builtin_prefetch(y + v * kLanes, 1);
}

// Computes kRows rows of a block, for the first kVectors vectors of the panel's
// outputs. The sums stay in registers only if the compiler unrolls every loop
// over them.
template <int kRows, int kVectors>
void MultiplyRows(const Block& block) {
  const Pair *x = block.x, *weights = block.weights;
  const int64_t pairs = block.pairs;
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    // The sums in y may be in another core's cache. They are loaded while the
    // products are computed.
    if (block.add) PrefetchToWrite(block.y + r * block.y_stride, kVectors);
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_ps();
  }
  const auto add_pair = [&](int64_t k) __attribute__((always_inline)) {
    __m512bh weight[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      weight[v] =
          reinterpret_cast<__m512bh>(_mm512_loadu_si512(weights + v * kLanes));
    }
    weights += kPanel;
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const __m512bh pair =
          reinterpret_cast<__m512bh>(_mm512_set1_epi32(x[r * kRowPairs + k]));
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], pair, weight[v]);
      }
    }
  };
  for (int64_t k = 0; k < block.next_lines; ++k) {
    Prefetch(block.next + k * kLine);
    add_pair(k);
  }
  for (int64_t k = block.next_lines; k < pairs; ++k) add_pair(k);
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const __m512 bias = block.bias == nullptr
                            ? _mm512_setzero_ps()
                            : _mm512_loadu_ps(block.bias + v * kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      float* y = block.y + r * block.y_stride + v * kLanes;
      __m512 sum = _mm512_add_ps(sums[r][v], bias);
      if (block.add) sum = _mm512_add_ps(_mm512_loadu_ps(y), sum);
      _mm512_storeu_ps(y, sum);
    }
  }
}

// Calls MultiplyRows() for `rows` rows. `rows` is 1 to kRows.
template <int kRows, int kVectors>
void MultiplyUpTo(int64_t rows, const Block& block) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return MultiplyUpTo<kRows - 1, kVectors>(rows, block);
  }
  MultiplyRows<kRows, kVectors>(block);
}

// Computes a tile of an incomplete last panel, which has only `columns`
// outputs. Uses padded copies of y and the bias, because vectors would reach
// beyond their ends.
void MultiplyNarrow(int64_t rows, int64_t columns, Block block) {
  float y[kTileRows * kPanel] = {}, bias[kPanel] = {};
  float* const to = block.y;
  const int64_t to_stride = block.y_stride;
  if (block.bias != nullptr) std::copy_n(block.bias, columns, bias);
  for (int64_t r = 0; r < rows && block.add; ++r) {
    std::copy_n(to + r * to_stride, columns, y + r * kPanel);
  }
  if (block.bias != nullptr) block.bias = bias;
  block.y = y;
  block.y_stride = kPanel;
  if (columns <= kLanes) {
    MultiplyUpTo<kTileRows, 1>(rows, block);
  } else {
    MultiplyUpTo<kTileRows, 2>(rows, block);
  }
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(y + r * kPanel, columns, to + r * to_stride);
  }
}

// Returns the number of cache lines that the weights of `pairs` pairs of inputs
// take in a panel.
int64_t Lines(int64_t pairs) { return pairs * kPanel * sizeof(Pair) / kLine; }

// Computes `rows` rows and `columns` outputs of a block. All tiles have nearly
// the same number of rows, because small tiles are slower. Meanwhile prefetches
// `next`, the weights of the next block, unless `next` is null.
void MultiplyBlock(int64_t rows, int64_t columns, const Block& block,
                   const Pair* next) {
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  const int64_t lines = next == nullptr ? 0 : Lines(block.pairs);
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t first = rows * t / tiles;
    const int64_t count = rows * (t + 1) / tiles - first;
    Block tile = block;
    const int64_t line = lines * t / tiles;
    tile.next = reinterpret_cast<const char*>(next) + line * kLine;
    tile.next_lines = std::min(block.pairs, lines * (t + 1) / tiles - line);
    if (tile.next_lines <= kLinesAtOnce) {
      for (int64_t i = 0; i < tile.next_lines; ++i) {
        Prefetch(tile.next + i * kLine);
      }
      tile.next_lines = 0;
    }
    tile.x += first * kRowPairs;
    tile.y += first * block.y_stride;
    if (columns == kPanel) {
      MultiplyUpTo<kTileRows, 2>(count, tile);
    } else if (columns == kLanes) {
      MultiplyUpTo<kTileRows, 1>(count, tile);
    } else {
      MultiplyNarrow(count, columns, tile);
    }
  }
}

// Inputs [begin, end) of a product, counted in pairs.
struct Range {
  int64_t begin, end;
};

int64_t Blocks(const Bf16GemmArgs& args) {
  return ((args.in + 1) / 2 + kBlockPairs - 1) / kBlockPairs;
}

Range BlockRange(const Bf16GemmArgs& args, int64_t block) {
  const int64_t pairs = (args.in + 1) / 2, blocks = Blocks(args);
  return {pairs * block / blocks, pairs * (block + 1) / blocks};
}

// Copies a block's inputs to x [rows, kRowPairs], rounded to bf16. Meanwhile
// prefetches `next`, the weights that are needed first, unless `next` is null.
void ReadInputs(const Bf16GemmArgs& args, const Range& range, const Pair* next,
                Pair* x) {
  const int64_t first = 2 * range.begin;
  const int64_t count = std::min(args.in, 2 * range.end) - first;
  const int64_t lines = next == nullptr ? 0 : Lines(range.end - range.begin);
  for (int64_t r = 0; r < args.rows; ++r, x += kRowPairs) {
    for (int64_t line = lines * r / args.rows;
         line < lines * (r + 1) / args.rows; ++line) {
      Prefetch(reinterpret_cast<const char*>(next) + line * kLine);
    }
    const int64_t at = r * args.x_stride + first;
    BFloat16* const to = reinterpret_cast<BFloat16*>(x);
    if (args.x_bf16 != nullptr) {
      RoundRow(args.x_bf16 + at, count, to);
    } else {
      RoundRow(args.x + at, count, to);
    }
  }
}

// Returns the Block that multiplies the inputs of the range, stored in `x`, by
// their weights in `panel`. The caller sets the bias and `add`.
Block BlockOf(const Range& range, const Pair* x, const Pair* panel, float* y,
              int64_t y_stride) {
  Block block{};
  block.pairs = range.end - range.begin;
  block.x = x;
  block.weights = panel + range.begin * kPanel;
  block.y = y;
  block.y_stride = y_stride;
  return block;
}

// Computes all outputs of at most kBlockRows rows. `x` has room for the inputs
// of one block.
void MultiplyBlockOfRows(const Bf16GemmArgs& args, Pair* x) {
  const int64_t pairs = (args.in + 1) / 2;
  const int64_t blocks = Blocks(args);
  const Pair* weights = reinterpret_cast<const Pair*>(args.weights);
  for (int64_t b = 0; b < blocks; ++b) {
    const Range range = BlockRange(args, b);
    ReadInputs(args, range, b == 0 ? weights : nullptr, x);
    for (int64_t first = 0; first < args.out; first += kPanel) {
      Block block = BlockOf(range, x, weights + first * pairs, args.y + first,
                            args.y_stride);
      block.bias = b == 0 && args.bias != nullptr ? args.bias + first : nullptr;
      block.add = args.add || b > 0;
      // The weights to prefetch: the next panel or, after the last panel, the
      // first panel of the next block.
      const Pair* next = block.weights + pairs * kPanel;
      if (first + kPanel >= args.out) {
        next = b + 1 < blocks ? weights + range.end * kPanel : nullptr;
      }
      MultiplyBlock(args.rows, std::min(kPanel, args.out - first), block, next);
    }
  }
}

// Rounds a panel's sums [rows, kPanel] to bf16, after GELU if args.gelu is
// true. Writes the first `columns` columns to y.
void WriteRounded(const Bf16GemmArgs& args, const float* sums, int64_t columns,
                  BFloat16* y) {
  const __mmask32 mask = First(columns);
  for (int64_t r = 0; r < args.rows; ++r, sums += kPanel, y += args.y_stride) {
    Vec16 low = Vec16::Load(sums), high = Vec16::Load(sums + kLanes);
    if (args.gelu) {
      low = GeluErf()(low);
      high = GeluErf()(high);
    }
    _mm512_mask_storeu_epi16(y, mask, Rounded(low.v, high.v));
  }
}

// Computes all outputs like MultiplyBlockOfRows(), but rounds them to bf16. `x`
// has room for the inputs of all blocks, one block after the other. So a
// panel's sums over all blocks are complete before the next panel begins.
// `sums` has room for one panel, [rows, kPanel], and stays in the cache.
void MultiplyToBf16(const Bf16GemmArgs& args, Pair* x, float* sums) {
  const int64_t pairs = (args.in + 1) / 2;
  const int64_t blocks = Blocks(args);
  const Pair* weights = reinterpret_cast<const Pair*>(args.weights);
  for (int64_t b = 0; b < blocks; ++b) {
    ReadInputs(args, BlockRange(args, b), b == 0 ? weights : nullptr,
               x + b * args.rows * kRowPairs);
  }
  for (int64_t first = 0; first < args.out; first += kPanel) {
    const int64_t columns = std::min(kPanel, args.out - first);
    float bias[kPanel] = {};
    if (args.bias != nullptr) std::copy_n(args.bias + first, columns, bias);
    for (int64_t b = 0; b < blocks; ++b) {
      Block block = BlockOf(BlockRange(args, b), x + b * args.rows * kRowPairs,
                            weights + first * pairs, sums, /*y_stride=*/kPanel);
      block.bias = b == 0 ? bias : nullptr;
      block.add = b > 0;
      const bool last = b + 1 == blocks && first + kPanel >= args.out;
      MultiplyBlock(args.rows, columns <= kLanes ? kLanes : kPanel, block,
                    last ? nullptr : block.weights + block.pairs * kPanel);
    }
    WriteRounded(args, sums, columns, args.y_bf16 + first);
  }
}

// Divides the rows into blocks of nearly equal size, at most `rows` rows each.
// Calls multiply() with the arguments of each block.
template <typename Multiply>
void ForEachBlockOfRows(const Bf16GemmArgs& args, int64_t rows,
                        Multiply multiply) {
  const int64_t blocks = (args.rows + rows - 1) / rows;
  for (int64_t b = 0; b < blocks; ++b) {
    multiply(
        SliceRows(args, args.rows * b / blocks, args.rows * (b + 1) / blocks));
  }
}

}  // namespace

void RoundToBf16Avx512(const float* x, int64_t count, BFloat16* y) {
  for (int64_t i = 0; i < count; i += kBf16Lanes) {
    const __mmask32 mask = First(count - i);
    _mm512_mask_storeu_epi16(y + i, mask, LoadRounded(mask, x + i));
  }
}

void Bf16GemmAvx512(const Bf16GemmArgs& args) {
  // x has room for the largest block. The additional vector is a margin for
  // RoundRow(), which writes whole vectors.
  alignas(64) thread_local Pair x[kBlockRows * kRowPairs + kLanes];
  if (args.y_bf16 == nullptr) {
    return ForEachBlockOfRows(args, kBlockRows, [&](const Bf16GemmArgs& part) {
      MultiplyBlockOfRows(part, x);
    });
  }
  alignas(64) thread_local float sums[kBlockRows * kPanel];
  const int64_t blocks = Blocks(args);
  const int64_t rows = kBlockRows / std::max<int64_t>(1, blocks);
  if (rows >= kTileRows) {
    return ForEachBlockOfRows(args, rows, [&](const Bf16GemmArgs& part) {
      MultiplyToBf16(part, x, sums);
    });
  }
  // x cannot hold even one tile of rows, because there are too many inputs.
  std::vector<Pair> larger(kTileRows * blocks * kRowPairs + kLanes);
  ForEachBlockOfRows(args, kTileRows, [&](const Bf16GemmArgs& part) {
    MultiplyToBf16(part, larger.data(), sums);
  });
}

}  // namespace sfmamba::kernels
