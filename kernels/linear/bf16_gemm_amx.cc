// The packed product of bf16 values by the processor's tiles (AMX), which hold
// 16 rows of 64 bytes: two tiles of inputs by two of weights give 32 rows of a
// panel.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/linear/amx_results.h"
#include "kernels/linear/amx_tiles.h"
#include "kernels/linear/gelu_simd.h"
#include "kernels/linear/packed_gemm.h"

namespace sfmamba::kernels {
namespace {

// The most bf16 values and rows of inputs in a block, so that they stay in the
// L2 cache while all weights pass by.
constexpr int64_t kBlockValues = 1 << 18, kBlockRows = 256;

int64_t RoundUp(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

// Inputs where tiles can be loaded: whole steps of all rows of the tiles.
struct Inputs {
  const BFloat16* x;
  int64_t stride;  // Between rows, in values.
};

// Adds the products with a panel's weights to the sums.
struct AddPanel {
  template <int kRows, int kColumns>
  void Run() const {
    const BFloat16* x = inputs.x;
    const BFloat16* from = weights;
    for (int64_t s = 0; s < steps; ++s) {
      if (first) PrefetchWeights(from);
      AddProducts<kRows, kColumns>(x, inputs.stride, from);
      x += kStepInputs;
      from += kStepWeights;
    }
    if (tail != nullptr) AddProducts<kRows, kColumns>(x, inputs.stride, tail);
  }

  const Inputs inputs;
  const BFloat16* const weights;
  const int64_t steps;
  const BFloat16* const tail;  // The last step's weights if it is not whole.
  const bool first;            // Of those that read the weights.
};

// Computes all outputs of the rows, panel by panel.
template <Result kResult, typename Activation>
void MultiplyBlock(const Bf16GemmArgs& args, const Inputs& inputs,
                   Activation activation) {
  const int64_t depth = (args.in + 1) / 2 * 2;
  const int64_t steps = depth / kStepInputs, left = depth % kStepInputs;
  const BFloat16* weights = args.weights;
  // Whole tiles of sums are stored as they are.
  const bool in_place = kResult == Result::kSet && args.bias == nullptr;
  alignas(64) BFloat16 tail[kStepWeights] = {};
  alignas(64) float values[2 * kTileRows * kPanel];
  Sums sums;
  sums.values = values;
  sums.y_stride = args.y_stride;
  for (int64_t first = 0; first < args.out; first += kPanel) {
    sums.columns = std::min(kPanel, args.out - first);
    sums.SetBias(args.bias == nullptr ? nullptr : args.bias + first);
    std::copy_n(weights + steps * kStepWeights, left * kPanel, tail);
    for (int64_t row = 0; row < args.rows; row += 2 * kTileRows) {
      const int64_t rows = std::min(2 * kTileRows, args.rows - row);
      const Inputs from{inputs.x + row * inputs.stride, inputs.stride};
      const AddPanel products{from, weights, steps, left > 0 ? tail : nullptr,
                              row == 0};
      const int64_t at = row * args.y_stride + first;
      if (in_place && rows % kTileRows == 0 && sums.columns % kLanes == 0) {
        SumProducts(rows, sums.columns, products, args.y + at, args.y_stride);
        continue;
      }
      SumProducts(rows, sums.columns, products, values);
      sums.SetResults(args.y, args.y_bf16, at);
      FinishRows<kResult>(sums, 0, rows, activation);
    }
    weights += depth * kPanel;
  }
}

void MultiplyBlock(const Bf16GemmArgs& args, const Inputs& inputs) {
  if (args.y_bf16 == nullptr) {
    args.add ? MultiplyBlock<Result::kAdd>(args, inputs, NoActivation())
             : MultiplyBlock<Result::kSet>(args, inputs, NoActivation());
  } else {
    args.gelu ? MultiplyBlock<Result::kRounded>(args, inputs, GeluErf())
              : MultiplyBlock<Result::kRounded>(args, inputs, NoActivation());
  }
}

}  // namespace

void Bf16GemmAmx(const Bf16GemmArgs& args) {
  const Tiles tiles;
  // Rows whose inputs can be read where they are.
  int64_t in_place = 0;
  if (args.x_bf16 != nullptr && args.in % kStepInputs == 0) {
    in_place = args.x_padded ? args.rows : args.rows / kTileRows * kTileRows;
  }
  const int64_t stride = RoundUp(args.in, kStepInputs) + kStepInputs;
  const int64_t most =
      std::clamp(kBlockValues / stride / (2 * kTileRows) * (2 * kTileRows),
                 2 * kTileRows, kBlockRows);
  for (int64_t begin = 0; begin < in_place; begin += most) {
    MultiplyBlock(SliceRows(args, begin, std::min(begin + most, in_place)),
                  {args.x_bf16 + begin * args.x_stride, args.x_stride});
  }
  thread_local std::vector<Line> copies;
  for (int64_t begin = in_place; begin < args.rows; begin += most) {
    const Bf16GemmArgs part =
        SliceRows(args, begin, std::min(begin + most, args.rows));
    const size_t lines = RoundUp(part.rows, kTileRows) * stride / kStepInputs;
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
