#include "kernels/segmentation/segmentation_argmax_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

void SegmentationArgmaxIsa(const SegmentationArgmaxArgs& args,
                           const ResizeTaps& rows, const ResizeTaps& columns,
                           float* row) {
  Classify<VecIsa>(args, rows, columns, row);
}

}  // namespace sfmamba::kernels
