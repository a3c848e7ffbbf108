// The processor's tiles, for files that are compiled for AMX. Four tiles hold
// sums, [rows, outputs] of 16 by 16 floats, two hold inputs, [rows, inputs] of
// 16 by 32 bf16 values, and two hold weights of 16 pairs of inputs by 16
// outputs.
#ifndef SFMAMBA_KERNELS_LINEAR_AMX_TILES_H_
#define SFMAMBA_KERNELS_LINEAR_AMX_TILES_H_

#include <immintrin.h>

#include <cstdint>
#include <type_traits>

#include "kernels/base/bfloat16.h"

namespace sfmamba::kernels {
namespace {

constexpr int64_t kTileRows = 16;
// The inputs that are multiplied in one step.
constexpr int64_t kStepInputs = 32;
// The outputs in a panel of packed weights (packed_gemm.h).
constexpr int64_t kPanel = 32;
// A panel's weights for one step.
constexpr int64_t kStepWeights = kStepInputs * kPanel;
constexpr int64_t kTileRowBytes = 64;
// Between a panel's pairs of inputs, and between rows of sums.
constexpr int64_t kPanelBytes = kPanel * sizeof(float);

// A row of a tile. Rows that lie in two lines of the cache take twice as long.
struct alignas(64) Line {
  BFloat16 values[kStepInputs];
};

// The calling thread's tiles, while it lives. Those of sums and inputs have
// `rows` rows, at most kTileRows: with fewer, products take less time.
// Afterwards the tiles are laid out as before: oneDNN remembers its layout and
// counts on it.
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
  // The tile configuration in the processor's own format (LDTILECFG). Palette
  // 0: no tiles are configured.
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

// Tiles of kRows by kColumns sums, each 1 or 2. Sums 0 and 1 are of the first
// tile of rows.
template <int kRows, int kColumns>
void ZeroSums() {
  _tile_zero(0);
  if (kColumns == 2) _tile_zero(1);
  if (kRows == 2) _tile_zero(2);
  if (kRows == 2 && kColumns == 2) _tile_zero(3);
}

// Where two tiles of rows begin. With one tile `second` is not used.
template <typename T>
struct TwoTiles {
  T *first, *second;
};

// Adds the products of one step: x has rows `stride` values apart, and weights
// are a step's of a panel.
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

// Brings lines of weights that are needed later into the L2 cache, which the
// processor does too late by itself.
inline void Prefetch(const BFloat16* weights, int64_t lines) {
  for (int64_t i = 0; i < lines; ++i) {
    _mm_prefetch(reinterpret_cast<const char*>(weights + i * kStepInputs),
                 _MM_HINT_T1);
  }
}

// Writes the sums of a panel's outputs, rows `stride` apart.
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

// Writes the sums that products.Run<kRows, kColumns>() adds up, for one or two
// tiles of rows and at least `columns` columns, rows `stride` apart, in whole
// tiles.
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
