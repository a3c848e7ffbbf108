// The packed product of floats that are split into bf16 values, by the
// processor's tiles (AMX): two tiles of inputs by two of weights give 32 rows
// of a panel, and each pair of tiles is multiplied six times, part by part.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/linear/amx_results.h"
#include "kernels/linear/amx_tiles.h"
#include "kernels/linear/gelu_simd.h"
#include "kernels/linear/packed_gemm.h"
#include "kernels/linear/split_floats.h"

namespace sfmamba::kernels {
namespace {

// The most steps and rows in a block, so that its inputs stay in the L2 cache
// while a panel's weights pass by. Each block's sums begin at 0, which makes
// errors smaller.
constexpr int64_t kBlockSteps = 12, kBlockRows = 256;
// Rows that are multiplied at once.
constexpr int64_t kPairRows = 2 * kTileRows;

// The inputs of a block of rows and steps, split. A tile of `height` rows, each
// of kStepInputs values, is contiguous; those of a step's parts follow each
// other, and so do the steps of a tile of rows.
struct SplitInputs {
  const BFloat16* tile(int64_t index) const {
    return x + index * steps * kSplitStepInputs;
  }

  const BFloat16* x;
  int64_t steps;
  int64_t rows, height;
};

// Adds the products with a panel's weights to the sums, and meanwhile calls
// beside.Step() at each step.
template <typename Beside>
struct AddPanel {
  template <int kRows, int kColumns>
  void Run() const {
    TwoTiles<const BFloat16> from = x;
    const BFloat16* panel = weights;
    for (int64_t s = 0; s < steps; ++s) {
      AddSplitProducts<kRows, kColumns>(from, kStepInputs, kPartInputs, panel);
      beside.Step();
      from.first += kSplitStepInputs;
      from.second += kSplitStepInputs;
      panel += kSplitStepWeights;
    }
  }

  const TwoTiles<const BFloat16> x;
  const BFloat16* const weights;
  const int64_t steps;
  Beside& beside;
};

// What is done beside the products: earlier results are finished, and later
// weights are brought into the cache.
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

// The part of a product that comes from a range of steps.
struct Part {
  SplitInputs inputs;
  const BFloat16* weights;  // Of the first panel.
  int64_t panel;            // From one panel to the next, in values.
  bool biased;
};

// Computes all outputs of the rows, panel by panel.
template <Result kResult, typename Activation>
void MultiplyPart(const SplitGemmArgs& args, const Part& part,
                  Activation activation) {
  constexpr int64_t kLinesAStep = kSplitStepWeights / kStepInputs;
  const SplitInputs& inputs = part.inputs;
  const float* const bias = part.biased ? args.bias : nullptr;
  const int64_t height = inputs.height;
  const int64_t pairs = (inputs.rows + 2 * height - 1) / (2 * height);
  Results<kResult, Activation> results(args.y, nullptr, activation);
  const BFloat16* weights = part.weights;
  for (int64_t output = 0; output < args.out; output += kPanel) {
    const int64_t columns = std::min(kPanel, args.out - output);
    const bool last = output + kPanel >= args.out;
    for (int64_t pair = 0; pair < pairs; ++pair) {
      const int64_t row = pair * 2 * height;
      const int64_t rows = std::min(2 * height, inputs.rows - row);
      FinishAndPrefetch<decltype(results)> beside{results, weights + part.panel,
                                                  0};
      if (!last) {
        // The next panel, a part with each pair.
        beside.lines_a_step = (kLinesAStep + pairs - 1) / pairs;
        beside.weights +=
            pair * beside.lines_a_step * inputs.steps * kStepInputs;
      }
      const AddPanel<decltype(beside)> products{
          {inputs.tile(2 * pair), inputs.tile(2 * pair + 1)},
          weights,
          inputs.steps,
          beside};
      Sums& sums = results.Next();
      sums.Clear(columns, bias == nullptr ? nullptr : bias + output);
      for (int64_t r = 0; r < rows; ++r) {
        sums.AddRow(r < height ? r : kTileRows + r - height,
                    (row + r) * args.y_stride + output);
      }
      results.Start(inputs.steps);
      SumProducts(rows > height, columns, products, sums.tiles(), kPanel);
      results.Stop();
    }
    weights += part.panel;
  }
}

void MultiplyPart(const SplitGemmArgs& args, const Part& part, bool add,
                  bool gelu) {
  if (gelu) {
    add ? MultiplyPart<Result::kAdd>(args, part, GeluErf())
        : MultiplyPart<Result::kSet>(args, part, GeluErf());
  } else {
    add ? MultiplyPart<Result::kAdd>(args, part, NoActivation())
        : MultiplyPart<Result::kSet>(args, part, NoActivation());
  }
}

// Splits inputs [begin, end) of all rows.
void Split(const SplitGemmArgs& args, int64_t begin, int64_t end,
           int64_t height, BFloat16* to) {
  const int64_t steps = (end - begin + kStepInputs - 1) / kStepInputs;
  const float* x = args.x + begin;
  for (int64_t row = 0; row < args.rows;) {
    for (int64_t i = 0; i < height && row < args.rows; ++i, ++row) {
      SplitRow(x + row * args.x_stride, end - begin, kPartInputs,
               kSplitStepInputs, to + i * kStepInputs);
    }
    to += steps * kSplitStepInputs;
  }
}

// Computes all outputs of at most kBlockRows rows.
void MultiplyBlock(const SplitGemmArgs& args) {
  const int64_t steps = (args.in + kStepInputs - 1) / kStepInputs;
  const int64_t blocks = (steps + kBlockSteps - 1) / kBlockSteps;
  // Two tiles at once are faster than one and one.
  const int64_t pairs = (args.rows + kPairRows - 1) / kPairRows;
  const int64_t tiles = args.rows <= kTileRows ? 1 : 2 * pairs;
  const int64_t height = (args.rows + tiles - 1) / tiles;
  const Tiles layout(height);
  thread_local std::vector<Line> x;
  const size_t lines = 2 * pairs * kBlockSteps * kSplitStepInputs / kStepInputs;
  if (x.size() < lines) x.resize(lines);
  const BFloat16* const weights = args.weights->parts;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = steps * b / blocks, end = steps * (b + 1) / blocks;
    BFloat16* const split = x.data()->values;
    Split(args, begin * kStepInputs, std::min(args.in, end * kStepInputs),
          height, split);
    MultiplyPart(args,
                 {{split, end - begin, args.rows, height},
                  weights + begin * kSplitStepWeights,
                  steps * kSplitStepWeights,
                  b == 0},
                 args.add || b > 0, args.gelu && b + 1 == blocks);
  }
}

}  // namespace

void SplitGemmAmx(const SplitGemmArgs& args) {
  const int64_t pairs = (args.rows + kPairRows - 1) / kPairRows;
  const int64_t most = kBlockRows / kPairRows;
  const int64_t blocks = (pairs + most - 1) / most;
  for (int64_t b = 0; b < blocks; ++b) {  // Blocks are nearly equal in size.
    MultiplyBlock(
        SliceRows(args, kPairRows * (pairs * b / blocks),
                  std::min(args.rows, kPairRows * (pairs * (b + 1) / blocks))));
  }
}

}  // namespace sfmamba::kernels
