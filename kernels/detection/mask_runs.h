#ifndef SFMAMBA_KERNELS_DETECTION_MASK_RUNS_H_
#define SFMAMBA_KERNELS_DETECTION_MASK_RUNS_H_

#include <cstdint>

#include "base/mask.h"
#include "kernels/detection/mask_paste.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// Finds exactly the pixels that MaskPaste sets, as runs along rows or columns,
// without sampling every pixel.
//
// A line is a row or a column of the picture. It has `side` cells. The value of
// a cell is the weighted sum of two neighbouring values of the mask. Along the
// line, the sample changes linearly between two neighbouring cells. If both
// cells are clearly above the threshold, all pixels between them are set. If
// both are clearly below the threshold, none is set. Otherwise, the position
// where the sample crosses the threshold is computed.
// Only pixels so near this position that rounding may decide are sampled as in
// MaskPaste.
struct MaskRunsArgs {
  const float* mask;  // [side, side] probabilities
  int side;
  float x1, y1, x2, y2;  // The box, in pixels of the picture.
  float threshold;
  PixelRect area;  // The result of MaskArea().
  bool by_rows;    // True if lines are rows, false if they are columns.
  // The lines to compute, [begin, end), which must be inside `area`. Lines and
  // the edges of runs are numbered from the picture's top left corner.
  int begin, end;
};

// Appends the runs of the lines to `runs`. Works on the calling thread.
// CpuIsa::kScalar is the reference and samples each pixel. If `side` is above
// 60, the other instruction sets sample each pixel too.
void MaskRunsCpu(const MaskRunsArgs& args, base::LineRuns* runs,
                 CpuIsa isa = ActiveCpuIsa());

// Finds, for each of some lines, the cells whose values are far from the
// threshold. Cell k of line i has the value
//   weight[2*i] * cells[k*side + index[2*i]] +
//   weight[2*i+1] * cells[k*side + index[2*i+1]]
// Bit k of above[i] is set if this value is > high. Bit k of below[i] is set if
// this value is < low. All other bits are cleared.
struct FarCellsArgs {
  const float* cells;  // The mask, [along lines, across lines], side <= 64.
  int side;
  int lines;
  const int* index;     // [lines, 2]
  const float* weight;  // [lines, 2]
  float high, low;
  uint64_t* above;  // [lines]
  uint64_t* below;  // [lines]
};

// These functions fill `above` and `below` of the arguments. MaskRunsCpu()
// calls the function for its instruction set.
void MaskRunsAvx2(const FarCellsArgs& args);
void MaskRunsAvx512(const FarCellsArgs& args);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_MASK_RUNS_H_
