#include "kernels/roi_align_simd.h"
#include "kernels/vec8.h"

namespace sfmamba {

void AlignRegionAvx2(const RoiAlignArgs& args, const RoiAlignArgs::Level& level,
                     const RoiBin* rows, const RoiBin* columns, float* out) {
  AlignRegion<Vec8>(args, level, rows, columns, out);
}

}  // namespace sfmamba
