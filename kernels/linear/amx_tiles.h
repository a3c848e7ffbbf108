// Matrix products with the CPU's eight tile registers (AMX). Only files that
// are compiled for AMX include this header. The tiles hold:
//   0 to 3  sums: 16 rows by 16 outputs, floats
//   4, 5    inputs: 16 rows by 32 inputs, bf16
//   6, 7    weights: 16 pairs of inputs by 16 outputs, bf16
#ifndef SFMAMBA_KERNELS_LINEAR_AMX_TILES_H_
#define SFMAMBA_KERNELS_LINEAR_AMX_TILES_H_

#include <immintrin.h>

#include <cstdint>
#include <type_traits>

#include "kernels/base/bfloat16.h"

namespace sfmamba::kernels {
namespace {

constexpr int64_t kTileRows = 16;
// The number of inputs in one step of a product: the width of a tile of inputs.
constexpr int64_t kStepInputs = 32;
// The number of outputs in a panel of packed weights (see packed_gemm.h).
constexpr int64_t kPanel = 32;
// The number of weights that one step reads from a panel.
constexpr int64_t kStepWeights = kStepInputs * kPanel;
constexpr int64_t kTileRowBytes = 64;
// The distance in bytes from one pair of inputs to the next in a panel.
constexpr int64_t kPanelBytes = kPanel * sizeof(float);

// One row of a tile, aligned to a cache line. A tile's row that crosses a cache
// line takes twice as long to load.
struct alignas(64) Line {
  BFloat16 values[kStepInputs];
};

// Configures the calling thread's tiles while this object exists. Tiles of sums
// and of inputs have `rows` rows, at most kTileRows. Products with fewer rows
// take less time.
//
// The destructor restores the previous configuration, because oneDNN expects
// its own configuration to stay.
class Tiles {
 public:
  explicit Tiles(int64_t rows = kTileRows) {
    _tile_storeconfig(&before_);
    Layout layout{};
    layout.palette = 1;
    for (int i = 0; i < 8; ++i) {
      layout.row_bytes[i] = kTileRowBytes;
      layout.rows[i] = i < kFirstOfWeights ? rows : kTileRows;
    }
    _tile_loadconfig(&layout);
  }
  ~Tiles() {
    if (before_.palette == 0) {
      _tile_release();
    } else {
      _tile_loadconfig(&before_);
    }
  }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

 private:
  // The configuration in the format of the CPU's LDTILECFG instruction. If
  // `palette` is 0, no tiles are configured.
  struct Layout {
    uint8_t palette, start_row;
    uint8_t reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  };
  static_assert(sizeof(Layout) == 64);
  static constexpr int kFirstOfWeights = 6;

  Layout before_;
};

// Sets kRows by kColumns tiles of sums to 0. kRows and kColumns are 1 or 2.
// Tiles 0 and 1 are the first row of tiles, tiles 2 and 3 the second.
template <int kRows, int kColumns>
void ZeroSums() {
  _tile_zero(0);
  if (kColumns == 2) _tile_zero(1);
  if (kRows == 2) _tile_zero(2);
  if (kRows == 2 && kColumns == 2) _tile_zero(3);
}

// Pointers to the first value of each of two tiles of rows. `second` is unused
// if there is only one tile.
template <typename T>
struct TwoTiles {
  T *first, *second;
};

// Adds the products of one step to the tiles of sums. The rows of x are
// `stride` values apart. `weights` are the weights of the step in a panel.
template <int kRows, int kColumns>
void AddProducts(const TwoTiles<const BFloat16>& x, int64_t stride,
                 const BFloat16* weights) {
  const int64_t row_bytes = stride * sizeof(BFloat16);
  _tile_loadd(6, weights, kPanelBytes);
  _tile_loadd(4, x.first, row_bytes);
  _tile_dpbf16ps(0, 4, 6);
  if (kColumns == 2) {
    _tile_loadd(7, weights + kPanel, kPanelBytes);
    _tile_dpbf16ps(1, 4, 7);
  }
  if (kRows == 2) {
    _tile_loadd(5, x.second, row_bytes);
    _tile_dpbf16ps(2, 5, 6);
    if (kColumns == 2) _tile_dpbf16ps(3, 5, 7);
  }
}

// Prefetches `lines` cache lines of weights into the L2 cache. Without this the
// CPU would load them too late.
inline void Prefetch(const BFloat16* weights, int64_t lines) {
  for (int64_t i = 0; i < lines; ++i) {
    _mm_prefetch(reinterpret_cast<const char*>(weights + i * kStepInputs),
                 _MM_HINT_T1);
  }
}

// Writes the tiles of sums to `sums`, where rows are `stride` floats apart.
template <int kRows, int kColumns>
void StoreSums(const TwoTiles<float>& sums, int64_t stride) {
  const int64_t row_bytes = stride * sizeof(float);
  _tile_stored(0, sums.first, row_bytes);
  if (kColumns == 2) _tile_stored(1, sums.first + kPanel / 2, row_bytes);
  if (kRows == 2) _tile_stored(2, sums.second, row_bytes);
  if (kRows == 2 && kColumns == 2) {
    _tile_stored(3, sums.second + kPanel / 2, row_bytes);
  }
}

// Sets `sums` to the sums that products.Run<kRows, kColumns>() adds up in the
// tiles. kRows is 2 if `two_rows` is true, otherwise 1. kColumns is 2 if
// `columns` is more than half a panel, otherwise 1. Rows of `sums` are `stride`
// floats apart and have room for whole tiles.
template <typename Products>
void SumProducts(bool two_rows, int64_t columns, const Products& products,
                 const TwoTiles<float>& sums, int64_t stride) {
  const auto run = [&](auto row_tiles, auto column_tiles) {
    ZeroSums<row_tiles, column_tiles>();
    products.template Run<row_tiles, column_tiles>();
    StoreSums<row_tiles, column_tiles>(sums, stride);
  };
  const std::integral_constant<int, 1> one;
  const std::integral_constant<int, 2> two;
  if (two_rows) {
    columns > kPanel / 2 ? run(two, two) : run(two, one);
  } else {
    columns > kPanel / 2 ? run(one, two) : run(one, one);
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_AMX_TILES_H_
