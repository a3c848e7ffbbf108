// The packed product of floats that are split into bf16 values, with the CPU's
// tiles (AMX). Two tiles of inputs and two tiles of weights give the sums of 32
// rows for the outputs of one panel. Each tile of inputs is multiplied by each
// tile of weights six times, each time with another pair of parts (see
// SplitFloat).
//
// Weights are stored as floats and split again for each use. Stored parts would
// be larger, and loading them from memory would take longer.
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

// The maximum number of steps and of rows in a block. These limits keep the
// inputs of a block in the L2 cache while they are multiplied by all panels.
//
// The sums of each block start at 0 and are added to y when the block is
// complete. This makes rounding errors smaller than one sum over all inputs
// would.
constexpr int64_t kBlockSteps = 12, kBlockRows = 256;
// The number of rows in a pair of tiles of x. Both tiles of a pair are
// multiplied by the same weights in a step.
constexpr int64_t kPairRows = 2 * kTileRows;

int64_t DivideUp(int64_t value, int64_t by) { return (value + by - 1) / by; }

// Memory for tiles, which a thread reuses for later products.
class Buffer {
 public:
  BFloat16* Reserve(int64_t values) {
    const size_t lines = DivideUp(values, kStepInputs);
    if (lines_.size() < lines) lines_.resize(lines);
    return lines_.data()->values;
  }

 private:
  std::vector<Line> lines_;
};

// Steps [begin, end) of a product. A step multiplies kStepInputs inputs.
struct Steps {
  int64_t count() const { return end - begin; }
  int64_t begin, end;
};

// Divides a product's inputs into blocks, which are ranges of steps.
class Blocks {
 public:
  explicit Blocks(int64_t in)
      : steps_(DivideUp(in, kStepInputs)),
        count_(DivideUp(steps_, kBlockSteps)) {}

  int64_t count() const { return count_; }
  int64_t steps() const { return steps_; }
  Steps operator[](int64_t block) const {
    return {steps_ * block / count_, steps_ * (block + 1) / count_};
  }

 private:
  int64_t steps_, count_;
};

// Splits the weights of a product, panel by panel. Goes through all blocks of
// steps `times` times, and through all panels of each block. While a panel is
// multiplied, Step() splits the next panel and prefetches the panel after it.
class SplitWeights {
 public:
  SplitWeights(const SplitGemmArgs& args, const Blocks& blocks, int64_t times)
      : weights_(args.weights),
        panels_(DivideUp(args.out, kPanel)),
        blocks_(blocks),
        end_(panels_ * blocks.count() * times) {
    thread_local Buffer buffer;
    split_[0] = buffer.Reserve(2 * kBlockSteps * kStepTiles);
    split_[1] = split_[0] + kBlockSteps * kStepTiles;
    Begin();
  }

  // Returns the next panel, which is valid until the next call of Take().
  // Before that call, Step() will be called `calls` times.
  const BFloat16* Take(int64_t calls) {
    SplitLines(lines_);
    const BFloat16* const taken = split_[next_ % 2];
    ++next_;
    Begin();
    lines_a_step_ = DivideUp(lines_, calls);
    return taken;
  }

  void Step() { SplitLines(lines_a_step_); }

 private:
  // The number of cache lines that one part of a step's weights has. The
  // weights are two tiles, one for each half of the panel. Each row of a tile
  // is a cache line.
  static constexpr int64_t kStepLines = 2 * kTileRows;

  const float* Place(int64_t index) const {
    const int64_t panel = index % panels_;
    const int64_t block = index / panels_ % blocks_.count();
    const int64_t step = panel * blocks_.steps() + blocks_[block].begin;
    return &weights_[step * kStepWeights].value;
  }

  // Prepares to split panel number next_.
  void Begin() {
    line_ = 0;
    lines_ = 0;
    if (next_ == end_) return;
    lines_ = kStepLines * blocks_[next_ / panels_ % blocks_.count()].count();
    from_ = Place(next_);
    later_ = Place(std::min(next_ + 1, end_ - 1));
  }

  void SplitLines(int64_t count) {
    const int64_t end = std::min(line_ + count, lines_);
    BFloat16* const to = split_[next_ % 2];
    for (; line_ < end; ++line_) {
      const int64_t step = line_ / kStepLines, half = line_ % 2;
      const int64_t pair = line_ % kStepLines / 2;
      const int64_t low = step * kStepWeights + pair * kPanel + half * kLanes;
      const int64_t high = low + kTileRows * kPanel;
      Prefetch(later_ + low);
      Prefetch(later_ + high);
      SplitLine(_mm512_loadu_ps(from_ + low), _mm512_loadu_ps(from_ + high),
                kPartTiles,
                to + step * kStepTiles + half * kTile + pair * kStepInputs);
    }
  }

  static void Prefetch(const float* line) {
    _mm_prefetch(reinterpret_cast<const char*>(line), _MM_HINT_T1);
  }

  const SplitFloat* const weights_;
  const int64_t panels_;
  const Blocks blocks_;
  const int64_t end_;
  BFloat16* split_[2];  // Panel i is in split_[i % 2].
  int64_t next_ = 0;    // The number of the panel that is being split.
  int64_t line_, lines_;
  int64_t lines_a_step_ = 0;
  const float *from_, *later_;
};

// The split inputs of a block of rows and steps, with the layout [pairs of
// tiles, steps, parts, 2 tiles]. A tile has `height` rows.
struct SplitInputs {
  const BFloat16* pair(int64_t index) const {
    return x + index * steps * kStepTiles;
  }

  const BFloat16* x;
  int64_t steps;
  int64_t rows, height;
};

// The work to do while the tiles compute products. Step() finishes some earlier
// results and splits some later weights.
template <typename Results>
struct FinishAndSplit {
  void Step() const {
    results.Step();
    weights.Step();
  }

  Results& results;
  SplitWeights& weights;
};

// Multiplies x by a panel's weights and adds the products to the tiles of sums.
// Calls beside.Step() kCallsAStep times in each step to do other work in
// parallel.
template <typename Beside>
struct AddPanel {
  template <int kRows, int kColumns>
  void Run() const {
    for (int64_t s = 0; s < steps; ++s) {
      AddSplitProducts<kRows, kColumns>(x + s * kStepTiles,
                                        weights + s * kStepTiles, beside);
    }
  }

  const BFloat16* const x;
  const BFloat16* const weights;
  const int64_t steps;
  const Beside& beside;
};

// Computes the products of a block of steps, panel by panel.
template <Result kResult, typename Activation>
void MultiplySteps(const SplitGemmArgs& args, const SplitInputs& inputs,
                   const float* bias, SplitWeights& weights,
                   Activation activation) {
  const int64_t height = inputs.height;
  const int64_t pairs = DivideUp(inputs.rows, 2 * height);
  const int64_t calls = inputs.steps * kCallsAStep;
  Results<kResult, Activation> results(args.y, nullptr, activation);
  const FinishAndSplit<decltype(results)> beside{results, weights};
  for (int64_t output = 0; output < args.out; output += kPanel) {
    const int64_t columns = std::min(kPanel, args.out - output);
    const BFloat16* const panel = weights.Take(pairs * calls);
    for (int64_t pair = 0; pair < pairs; ++pair) {
      const int64_t row = pair * 2 * height;
      const int64_t rows = std::min(2 * height, inputs.rows - row);
      Sums& sums = results.Next();
      sums.Clear(columns, bias == nullptr ? nullptr : bias + output);
      for (int64_t r = 0; r < rows; ++r) {
        sums.AddRow(r < height ? r : kTileRows + r - height,
                    (row + r) * args.y_stride + output);
      }
      results.Start(calls);
      SumProducts(rows > height, columns,
                  AddPanel<decltype(beside)>{inputs.pair(pair), panel,
                                             inputs.steps, beside},
                  sums.tiles(), kPanel);
      results.Stop();
    }
  }
}

void MultiplySteps(const SplitGemmArgs& args, const SplitInputs& inputs,
                   bool first, bool last, SplitWeights& weights) {
  const float* const bias = first ? args.bias : nullptr;
  const auto multiply = [&](auto activation) {
    args.add || !first
        ? MultiplySteps<Result::kAdd>(args, inputs, bias, weights, activation)
        : MultiplySteps<Result::kSet>(args, inputs, bias, weights, activation);
  };
  const bool gelu = args.gelu && last;
  gelu ? multiply(GeluErf()) : multiply(NoActivation());
}

// Splits the inputs that `steps` multiply, for all rows. Writes them to `to` in
// the layout of SplitInputs.
void Split(const SplitGemmArgs& args, const Steps& steps, int64_t height,
           BFloat16* to) {
  const int64_t begin = steps.begin * kStepInputs;
  const int64_t count = std::min(args.in, steps.end * kStepInputs) - begin;
  for (int64_t row = 0; row < args.rows; ++row) {
    const int64_t tile = row / height;
    SplitRow(args.x + row * args.x_stride + begin, count,
             to + tile / 2 * steps.count() * kStepTiles + tile % 2 * kTile +
                 row % height * kStepInputs);
  }
}

// Computes all outputs of at most kBlockRows rows.
void MultiplyRows(const SplitGemmArgs& args, const Blocks& blocks,
                  SplitWeights& weights) {
  // The rows are divided into one tile, or into an even number of tiles. A step
  // that multiplies a pair of tiles by the weights is faster than two steps
  // with one tile each.
  const int64_t tiles =
      args.rows <= kTileRows ? 1 : 2 * DivideUp(args.rows, kPairRows);
  const int64_t height = DivideUp(args.rows, tiles);
  const Tiles layout(height);
  thread_local Buffer buffer;
  BFloat16* const x =
      buffer.Reserve(DivideUp(tiles, 2) * kBlockSteps * kStepTiles);
  for (int64_t b = 0; b < blocks.count(); ++b) {
    Split(args, blocks[b], height, x);
    MultiplySteps(args, {x, blocks[b].count(), args.rows, height}, b == 0,
                  b + 1 == blocks.count(), weights);
  }
}

}  // namespace

bool IsFiniteAvx512(const float* x, int64_t count) {
  // The classes of floats to find: NaNs (quiet or signalling) and infinities.
  constexpr int kNanOrInfinite = 0x99;
  __mmask16 found = 0;
  for (int64_t k = 0; k < count; k += kLanes) {
    const __mmask16 mask = static_cast<__mmask16>(First(count - k));
    found |= _mm512_fpclass_ps_mask(_mm512_maskz_loadu_ps(mask, x + k),
                                    kNanOrInfinite);
  }
  return found == 0;
}

void SplitGemmAmx(const SplitGemmArgs& args) {
  if (args.rows == 0 || args.out == 0) return;
  const int64_t pairs = DivideUp(args.rows, kPairRows);
  const int64_t times = DivideUp(pairs, kBlockRows / kPairRows);
  const Blocks blocks(args.in);
  SplitWeights weights(args, blocks, times);
  for (int64_t i = 0; i < times; ++i) {  // Blocks are nearly equal in size.
    const int64_t begin = kPairRows * (pairs * i / times);
    const int64_t end = kPairRows * (pairs * (i + 1) / times);
    MultiplyRows(SliceRows(args, begin, std::min(args.rows, end)), blocks,
                 weights);
  }
}

}  // namespace sfmamba::kernels
