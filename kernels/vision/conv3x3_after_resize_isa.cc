#include "kernels/simd/vec_isa.h"
#include "kernels/vision/conv3x3_after_resize_simd.h"

namespace sfmamba::kernels {

void ResizedConv3x3Isa(const ResizedConv3x3Args& args, const ResizeTaps& rows,
                       const ResizeTaps& columns, float* scratch) {
  ResizedConv3x3<VecIsa>(args, rows, columns, scratch);
}

}  // namespace sfmamba::kernels
