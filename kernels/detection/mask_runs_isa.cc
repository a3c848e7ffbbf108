#include "kernels/detection/mask_runs_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

void MaskRunsIsa(const FarCellsArgs& args) { FindFarCells(args); }

}  // namespace sfmamba::kernels
