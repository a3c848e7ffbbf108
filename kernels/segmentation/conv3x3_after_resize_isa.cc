#include "kernels/segmentation/conv3x3_after_resize_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

void Conv3x3AfterResizeIsa(const Conv3x3AfterResizeArgs& args,
                           const ResizeTaps& rows, const ResizeTaps& columns,
                           float* scratch) {
  Conv3x3AfterResize<VecIsa>(args, rows, columns, scratch);
}

}  // namespace sfmamba::kernels
