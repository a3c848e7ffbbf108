#include "kernels/roi_align_simd.h"
#include "kernels/vec16.h"

namespace sfmamba {

void AlignRegionAvx512(const RoiAlignArgs& args,
                       const RoiAlignArgs::Level& level, const RoiBin* rows,
                       const RoiBin* columns, float* out) {
  AlignRegion<Vec16>(args, level, rows, columns, out);
}

}  // namespace sfmamba
