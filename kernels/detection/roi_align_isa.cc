#include "kernels/detection/roi_align_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

void AlignRegionIsa(const RoiAlignArgs& args, const RoiAlignArgs::Level& level,
                    const RoiBin* rows, const RoiBin* columns, float* out) {
  AlignRegion<VecIsa>(args, level, rows, columns, out);
}

}  // namespace sfmamba::kernels
