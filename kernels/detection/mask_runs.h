#ifndef SFMAMBA_KERNELS_DETECTION_MASK_RUNS_H_
#define SFMAMBA_KERNELS_DETECTION_MASK_RUNS_H_

#include <cstdint>

#include "base/mask.h"
#include "kernels/detection/mask_paste.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// The pixels that MaskPaste sets, bit for bit, as runs along rows or columns,
// without a look at each pixel.
//
// Along a line the sample is linear between two cells of the mask. Where both
// cells are far from the threshold on the same side, all pixels between them
// are alike. Elsewhere the crossing is computed, and only pixels that are so
// near to it that rounding may decide are sampled as MaskPaste samples them.
struct MaskRunsArgs {
  const float* mask;  // [side, side] probabilities
  int side;
  float x1, y1, x2, y2;  // The box in the picture's pixels.
  float threshold;
  PixelRect area;  // The result of MaskArea().
  bool by_rows;    // Lines are rows; else columns.
  // The lines, inside `area`; counted, as all edges are, in the picture.
  int begin, end;
};

// Appends the lines' runs. Runs on the calling thread. kScalar samples each
// pixel and is the reference; so is done for a `side` above 60.
void MaskRunsCpu(const MaskRunsArgs& args, base::LineRuns* runs,
                 CpuIsa isa = ActiveCpuIsa());

// Tells for some lines which cells along them are far from the threshold. Cell
// k of line i has the value
//   weight[2*i] * cells[k*side + index[2*i]] +
//   weight[2*i+1] * cells[k*side + index[2*i+1]]
// It sets bit k of above[i] if that is > high, of below[i] if it is < low, and
// clears the other bits.
struct FarCellsArgs {
  const float* cells;  // [side, side], side <= 64
  int side;
  int lines;
  const int* index;     // [lines, 2]
  const float* weight;  // [lines, 2]
  float high, low;
  uint64_t* above;  // [lines]
  uint64_t* below;  // [lines]
};

// MaskRunsCpu chooses among these, one per instruction set.
void MaskRunsAvx2(const FarCellsArgs& args);
void MaskRunsAvx512(const FarCellsArgs& args);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_MASK_RUNS_H_
