// The bf16 convolution with the CPU's tiles (AMX). It does not gather the
// inputs of each pixel. Instead it rounds a block of the map and copies it,
// with padding. For each position in the kernel, the inputs of adjacent output
// pixels are a constant distance apart in the copy. A tile can therefore load
// them as its rows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/linear/amx_results.h"
#include "kernels/linear/amx_tiles.h"
#include "kernels/linear/gelu_simd.h"
#include "kernels/linear/gemm_convolution.h"

namespace sfmamba::kernels {
namespace {

// The maximum number of values in a block of the map. This limit keeps the
// block and the weights in the L2 cache.
constexpr int64_t kBlockValues = 1 << 18;

// Output rows [first, first + rows) of a map, and a copy of their inputs.
//
// The copy consists of s * s planes, where s is the stride. Each plane has
// every s-th row and every s-th column of the padded map. Adjacent output
// pixels therefore read adjacent pixels of a plane. A position in a plane is
// called a place and has the index row * columns + column. The output pixel in
// row r of the block and in column c belongs to the place in row r and column
// c. The last places of a row belong to no output pixel, because the kernel
// would reach beyond the end of the row.
//
// If each row of the kernel is a run (see RunsOf()), there are only s planes,
// with every s-th row but all columns. A place then holds s pixels. A tile also
// loads values beyond the run, but their weights are 0.
struct Block {
  int64_t map, first, rows;
  int64_t columns;  // Places in a row of a plane.
  int64_t spacing;  // Values from one place to the next.
  int64_t plane;    // Values in a plane.
  const BFloat16* x;
};

bool HasRunsOfRows(const GemmConvolutionArgs<BFloat16>& args,
                   const ConvolutionRuns& runs) {
  return runs.runs == args.kernel;
}

template <typename T>
void FillPlanesOfRows(const GemmConvolutionArgs<BFloat16>& args, const T* map,
                      const Block& block, BFloat16* to) {
  const int64_t reach = (args.kernel - 1) / args.stride;
  const int64_t padding = args.kernel / 2;
  const int64_t row_values = block.columns * block.spacing;
  const int64_t left = padding * args.in, width = args.width * args.in;
  for (int64_t top = 0; top < args.stride; ++top) {
    for (int64_t r = 0; r < block.rows + reach; ++r, to += row_values) {
      const int64_t y = (block.first + r) * args.stride + top - padding;
      if (y < 0 || y >= args.height) {
        std::fill_n(to, row_values, BFloat16());
        continue;
      }
      std::fill_n(to, left, BFloat16());
      RoundRow(map + y * width, width, to + left);
      // RoundRow() writes whole vectors. The values that it writes beyond this
      // row are overwritten later, by zeros or by the next row.
      if (left + width < row_values) {
        std::fill_n(to + left + width, row_values - left - width, BFloat16());
      }
    }
  }
  // The tiles of the last places also load values beyond the planes. These must
  // be 0. If one were infinite or NaN, its product with a weight of 0 would be
  // NaN.
  std::fill_n(to, kStepInputs + 2 * kTileRows * block.spacing, BFloat16());
}

template <typename T>
void FillPlanes(const GemmConvolutionArgs<BFloat16>& args, const T* map,
                const Block& block, BFloat16* to) {
  const int64_t reach = (args.kernel - 1) / args.stride;
  const int64_t padding = args.kernel / 2;
  for (int64_t top = 0; top < args.stride; ++top) {
    for (int64_t left = 0; left < args.stride; ++left, to += block.plane) {
      BFloat16* place = to;
      for (int64_t r = 0; r < block.rows + reach; ++r) {
        const int64_t y = (block.first + r) * args.stride + top - padding;
        for (int64_t c = 0; c < block.columns; ++c, place += block.spacing) {
          const int64_t x = c * args.stride + left - padding;
          if (y < 0 || y >= args.height || x < 0 || x >= args.width) {
            std::fill_n(place, block.spacing, BFloat16());
          } else {
            RoundRow(map + (y * args.width + x) * args.in, args.in, place);
          }
        }
      }
    }
  }
}

// For each run, returns the distance, in values, from an output pixel's place
// in plane 0 to the pixel's inputs for this run.
std::vector<int64_t> RunOffsets(const GemmConvolutionArgs<BFloat16>& args,
                                const ConvolutionRuns& runs,
                                const Block& block) {
  const bool of_rows = HasRunsOfRows(args, runs);
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < args.kernel; ++i) {
    for (int64_t j = 0; j < (of_rows ? 1 : args.kernel); ++j) {
      const int64_t plane =
          i % args.stride * (of_rows ? 1 : args.stride) + j % args.stride;
      const int64_t place = i / args.stride * block.columns + j / args.stride;
      offsets.push_back(plane * block.plane + place * block.spacing);
    }
  }
  return offsets;
}

// Multiplies the inputs of all runs by a panel's weights and adds the products
// to the tiles of sums. Meanwhile finishes earlier results and prefetches
// weights.
template <typename Results>
struct AddRuns {
  template <int kRows, int kColumns>
  void Run() const {
    const BFloat16* from = weights;
    for (const int64_t offset : offsets) {
      for (int64_t k = 0; k < length; k += kStepInputs) {
        if (first) Prefetch(from + kStepsAhead * kStepWeights, kPanel);
        const BFloat16* place = x + offset + k;
        AddProducts<kRows, kColumns>({place, place + kTileRows * spacing},
                                     spacing, from);
        results.Step();
        from += kStepWeights;
      }
    }
  }

  static constexpr int64_t kStepsAhead = 4;

  const std::vector<int64_t>& offsets;
  const int64_t length;     // Inputs in a run, with padding.
  const BFloat16* const x;  // The inputs of the first place in plane 0.
  const int64_t spacing;
  const BFloat16* const weights;
  const bool first;  // Whether these tiles are the first to read the weights.
  Results& results;
};

// Computes output pixels [begin, end) of the map. All of them must lie in the
// block.
template <Result kResult, typename Activation>
void Convolve(const GemmConvolutionArgs<BFloat16>& args, const Block& block,
              int64_t begin, int64_t end, Activation activation) {
  const int64_t height = (args.height + args.stride - 1) / args.stride;
  const int64_t width = (args.width + args.stride - 1) / args.stride;
  const auto place_of = [&](int64_t pixel) {
    return (pixel / width - block.first) * block.columns + pixel % width;
  };
  const int64_t last = place_of(end - 1) + 1;
  const ConvolutionRuns runs = RunsOf<BFloat16>(args.in, args.kernel);
  const std::vector<int64_t> offsets = RunOffsets(args, runs, block);
  Results<kResult, Activation> results(args.y, args.y_bf16, activation);
  const int64_t start = place_of(begin);
  for (int64_t place = start; place < last; place += 2 * kTileRows) {
    const int64_t rows = std::min(2 * kTileRows, last - place);
    for (int64_t output = 0; output < args.out; output += kPanel) {
      Sums& sums = results.Next();
      sums.Clear(std::min(kPanel, args.out - output),
                 args.bias == nullptr ? nullptr : args.bias + output);
      // Adds only places that belong to an output pixel. Each iteration adds
      // the places of one output row.
      for (int64_t r = 0; r < rows;) {
        const int64_t row = (place + r) / block.columns;
        const int64_t column = (place + r) % block.columns;
        const int64_t stop =
            std::min(rows, r + std::max<int64_t>(0, width - column));
        const int64_t pixel =
            (block.map * height + block.first + row) * width + column;
        for (int64_t i = r; i < stop; ++i) {
          sums.AddRow(i, (pixel + i - r) * args.y_stride + output);
        }
        r += block.columns - column;
      }
      results.Start(runs.depth() / kStepInputs);
      SumProducts(
          rows > kTileRows, sums.columns,
          AddRuns<Results<kResult, Activation>>{
              offsets, runs.packed_length, block.x + place * block.spacing,
              block.spacing, args.weights + output * runs.depth(),
              place == start, results},
          sums.tiles(), kPanel);
      results.Stop();
    }
  }
}

template <Result kResult>
void Convolve(const GemmConvolutionArgs<BFloat16>& args, const Block& block,
              int64_t begin, int64_t end) {
  if (args.gelu) {
    Convolve<kResult>(args, block, begin, end, GeluTanh());
  } else if (std::isinf(args.low) && std::isinf(args.high)) {
    Convolve<kResult>(args, block, begin, end, NoActivation());
  } else {
    Convolve<kResult>(args, block, begin, end, Clamped{args.low, args.high});
  }
}

// Copies the block's inputs to `x` and computes output pixels [begin, end) of
// the map.
void ConvolveBlock(const GemmConvolutionArgs<BFloat16>& args, Block block,
                   int64_t begin, int64_t end, std::vector<Line>* x) {
  const ConvolutionRuns runs = RunsOf<BFloat16>(args.in, args.kernel);
  const bool of_rows = HasRunsOfRows(args, runs);
  const int64_t planes = args.stride * (of_rows ? 1 : args.stride);
  // The buffer is larger than the planes, because tiles also read values beyond
  // the last place.
  const int64_t values =
      planes * block.plane + 2 * kTileRows * block.spacing + kStepInputs;
  const size_t lines = values / kStepInputs + 1;
  if (x->size() < lines) x->resize(lines);
  BFloat16* to = x->data()->values;
  const auto fill = [&](const auto* maps) {
    const auto* map = maps + block.map * args.height * args.width * args.in;
    of_rows ? FillPlanesOfRows(args, map, block, to)
            : FillPlanes(args, map, block, to);
  };
  args.x_bf16 != nullptr ? fill(args.x_bf16) : fill(args.x);
  block.x = to;
  if (args.y_bf16 != nullptr) {
    Convolve<Result::kRounded>(args, block, begin, end);
  } else if (args.add) {
    Convolve<Result::kAdd>(args, block, begin, end);
  } else {
    Convolve<Result::kSet>(args, block, begin, end);
  }
}

}  // namespace

void GemmConvolutionAmx(const GemmConvolutionArgs<BFloat16>& args,
                        int64_t begin, int64_t end) {
  const Tiles tiles;
  thread_local std::vector<Line> x;
  const int64_t height = (args.height + args.stride - 1) / args.stride;
  const int64_t width = (args.width + args.stride - 1) / args.stride;
  const int64_t reach = (args.kernel - 1) / args.stride;
  const ConvolutionRuns runs = RunsOf<BFloat16>(args.in, args.kernel);
  Block block{};
  block.columns = width + reach;
  block.spacing = HasRunsOfRows(args, runs) ? int64_t{args.stride} * args.in
                                            : runs.packed_length;
  const int64_t row_values =
      args.stride * args.stride * block.columns * block.spacing;
  const int64_t most = std::max<int64_t>(1, kBlockValues / row_values - reach);
  while (begin < end) {
    block.map = begin / (height * width);
    const int64_t map_begin = block.map * height * width;
    block.first = (begin - map_begin) / width;
    const int64_t left = std::min(end - map_begin, height * width);
    const int64_t last = (left + width - 1) / width;
    block.rows = std::min(most, last - block.first);
    block.plane = (block.rows + reach) * block.columns * block.spacing;
    const int64_t stop = std::min(left, (block.first + block.rows) * width);
    ConvolveBlock(args, block, begin - map_begin, stop, &x);
    begin = map_begin + stop;
  }
}

}  // namespace sfmamba::kernels
