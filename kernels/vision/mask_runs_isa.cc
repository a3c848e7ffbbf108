#include "kernels/simd/vec_isa.h"
#include "kernels/vision/mask_runs_simd.h"

namespace sfmamba::kernels {

void MaskRunsIsa(const FarCellsArgs& args) { FindFarCells(args); }

}  // namespace sfmamba::kernels
