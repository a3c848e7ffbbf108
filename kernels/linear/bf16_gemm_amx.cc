// The packed product of bf16 values with the CPU's tiles (AMX). A tile has 16
// rows of 64 bytes. Two tiles of inputs and two tiles of weights give the sums
// of 32 rows by one panel (32 outputs).
#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/linear/amx_results.h"
#include "kernels/linear/amx_tiles.h"
#include "kernels/linear/gelu_simd.h"
#include "kernels/linear/packed_gemm.h"

namespace sfmamba::kernels {
namespace {

// The maximum size of a block of inputs, in bf16 values and in rows. These
// limits keep a block in the L2 cache while it is multiplied by all weights.
// However long the rows are, a block may have kTileRows rows.
constexpr int64_t kBlockValues = 1 << 18, kBlockRows = 256;

int64_t RoundUp(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

// Inputs that can be loaded into tiles, because each row has whole steps of
// kStepInputs values.
struct Inputs {
  const BFloat16* x;
  int64_t stride;  // The distance between rows, in values.
};

// Adds the products of x and a panel's weights to the tiles of sums. Calls
// beside.Step() after each whole step to do other work in parallel.
template <typename Beside>
struct AddPanel {
  template <int kRows, int kColumns>
  void Run() const {
    TwoTiles<const BFloat16> from = x;
    const BFloat16* panel = weights;
    for (int64_t s = 0; s < steps; ++s) {
      AddProducts<kRows, kColumns>(from, stride, panel);
      beside.Step();
      from.first += kStepInputs;
      from.second += kStepInputs;
      panel += kStepWeights;
    }
    if (tail != nullptr) AddProducts<kRows, kColumns>(from, stride, tail);
  }

  const TwoTiles<const BFloat16> x;
  const int64_t stride;
  const BFloat16* const weights;
  const int64_t steps;
  const BFloat16* const tail;  // Weights of an incomplete last step, or null.
  Beside& beside;
};

// The work to do while the tiles compute products. Step() finishes some earlier
// results and prefetches weights that are needed later.
template <typename Results>
struct FinishAndPrefetch {
  void Step() {
    results.Step();
    Prefetch(weights, lines_a_step);
    weights += lines_a_step * kStepInputs;
  }

  Results& results;
  const BFloat16* weights;
  int64_t lines_a_step;
};

// Computes all outputs of the rows, panel by panel. A tile has `tile_rows`
// rows, at most args.rows. The last tile starts early enough to be full, so it
// may overlap the tile before it.
template <Result kResult, typename Activation>
void MultiplyBlock(const Bf16GemmArgs& args, const Inputs& inputs,
                   int64_t tile_rows, Activation activation) {
  const int64_t depth = (args.in + 1) / 2 * 2;
  const int64_t steps = depth / kStepInputs, left = depth % kStepInputs;
  const int64_t blocks = (args.rows + 2 * tile_rows - 1) / (2 * tile_rows);
  const BFloat16* weights = args.weights;
  // In this file, kSet has no activation. Without a bias, the sums are then the
  // results, so whole tiles of sums are stored directly in y.
  const bool in_place = kResult == Result::kSet && args.bias == nullptr;
  alignas(64) BFloat16 tail[kStepWeights] = {};
  Results<kResult, Activation> results(args.y, args.y_bf16, activation);
  for (int64_t output = 0; output < args.out; output += kPanel) {
    const int64_t columns = std::min(kPanel, args.out - output);
    const bool last = output + kPanel >= args.out;
    std::copy_n(weights + steps * kStepWeights, left * kPanel, tail);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t row = block * 2 * tile_rows;
      const int64_t first = std::min(row, args.rows - tile_rows);
      const int64_t second = std::min(row + tile_rows, args.rows - tile_rows);
      const bool two = row + tile_rows < args.rows;
      FinishAndPrefetch<Results<kResult, Activation>> beside{
          results, weights + depth * kPanel, 0};
      if (!last) {
        // Each block of rows prefetches a part of the next panel.
        beside.lines_a_step = (kPanel + blocks - 1) / blocks;
        beside.weights += block * beside.lines_a_step * steps * kStepInputs;
      }
      const AddPanel<decltype(beside)> products{
          {inputs.x + first * inputs.stride, inputs.x + second * inputs.stride},
          inputs.stride,
          weights,
          steps,
          left > 0 ? tail : nullptr,
          beside};
      if (in_place && columns % kLanes == 0) {
        SumProducts(two, columns, products,
                    {args.y + first * args.y_stride + output,
                     args.y + second * args.y_stride + output},
                    args.y_stride);
        continue;
      }
      Sums& sums = results.Next();
      sums.Clear(columns, args.bias == nullptr ? nullptr : args.bias + output);
      for (int64_t r = row; r < std::min(row + 2 * tile_rows, args.rows); ++r) {
        sums.AddRow(r < row + tile_rows ? r - first : kTileRows + r - second,
                    r * args.y_stride + output);
      }
      results.Start(std::max<int64_t>(1, steps));
      SumProducts(two, columns, products, sums.tiles(), kPanel);
      results.Stop();
    }
    weights += depth * kPanel;
  }
}

void MultiplyBlock(const Bf16GemmArgs& args, const Inputs& inputs) {
  const int64_t tiles = (args.rows + kTileRows - 1) / kTileRows;
  const int64_t rows = (args.rows + tiles - 1) / tiles;
  const Tiles layout(rows);
  if (args.y_bf16 == nullptr) {
    args.add ? MultiplyBlock<Result::kAdd>(args, inputs, rows, NoActivation())
             : MultiplyBlock<Result::kSet>(args, inputs, rows, NoActivation());
  } else {
    args.gelu
        ? MultiplyBlock<Result::kRounded>(args, inputs, rows, GeluErf())
        : MultiplyBlock<Result::kRounded>(args, inputs, rows, NoActivation());
  }
}

}  // namespace

void Bf16GemmAmx(const Bf16GemmArgs& args) {
  // x is read in place if it is bf16 and its rows have whole steps. Otherwise
  // it is copied.
  const bool in_place = args.x_bf16 != nullptr && args.in % kStepInputs == 0;
  const int64_t stride = RoundUp(args.in, kStepInputs) + kStepInputs;
  const int64_t most = std::clamp(kBlockValues / stride, kTileRows, kBlockRows);
  const int64_t blocks = (args.rows + most - 1) / most;
  thread_local std::vector<Line> copies;
  for (int64_t b = 0; b < blocks; ++b) {
    const Bf16GemmArgs part =
        SliceRows(args, args.rows * b / blocks, args.rows * (b + 1) / blocks);
    if (in_place) {
      MultiplyBlock(part, {part.x_bf16, part.x_stride});
      continue;
    }
    const size_t lines = part.rows * stride / kStepInputs;
    if (copies.size() < lines) copies.resize(lines);
    BFloat16* x = copies.data()->values;
    for (int64_t row = 0; row < part.rows; ++row) {
      const int64_t at = row * part.x_stride;
      BFloat16* to = x + row * stride;
      part.x_bf16 != nullptr ? RoundRow(part.x_bf16 + at, part.in, to)
                             : RoundRow(part.x + at, part.in, to);
    }
    MultiplyBlock(part, {x, stride});
  }
}

}  // namespace sfmamba::kernels
