// Finds the mask cells that are far from the threshold. mask_runs_isa.cc
// includes this header and is compiled once for each instruction set. The code
// contains no vector types, because the compiler vectorizes the loop over
// neighbouring lines by itself.
#ifndef SFMAMBA_KERNELS_DETECTION_MASK_RUNS_SIMD_H_
#define SFMAMBA_KERNELS_DETECTION_MASK_RUNS_SIMD_H_

#include <cstdint>

#include "kernels/detection/mask_runs.h"

namespace sfmamba::kernels {
namespace {

// Sets the bits of cell k of the lines [begin, end) in `above` and `below`. All
// these lines must lie between the same two mask cells, whose values are `left`
// and `right`.
inline void CompareCell(const FarCellsArgs& args, int k, int begin, int end,
                        float left, float right) {
  const float* weight = args.weight;
  uint64_t* above = args.above;
  uint64_t* below = args.below;
  const float high = args.high, low = args.low;
  const uint64_t bit = uint64_t{1} << k;
  for (int i = begin; i < end; ++i) {
    const float value = weight[2 * i] * left + weight[2 * i + 1] * right;
    above[i] |= value > high ? bit : 0;
    below[i] |= value < low ? bit : 0;
  }
}

inline void FindFarCells(const FarCellsArgs& args) {
  for (int i = 0; i < args.lines; ++i) args.above[i] = args.below[i] = 0;
  const int* index = args.index;
  for (int begin = 0, end; begin < args.lines; begin = end) {
    const int left = index[2 * begin], right = index[2 * begin + 1];
    for (end = begin + 1; end < args.lines && index[2 * end] == left &&
                          index[2 * end + 1] == right;) {
      ++end;
    }
    for (int k = 0; k < args.side; ++k) {
      const float* cells = args.cells + k * args.side;
      CompareCell(args, k, begin, end, cells[left], cells[right]);
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_MASK_RUNS_SIMD_H_
