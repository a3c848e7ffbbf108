#include "kernels/simd/vec_isa.h"
#include "kernels/vision/segmentation_argmax_simd.h"

namespace sfmamba::kernels {

void SegmentationArgmaxIsa(const SegmentationArgmaxArgs& args,
                           const ResizeTaps& rows, const ResizeTaps& columns,
                           float* row) {
  Classify<VecIsa>(args, rows, columns, row);
}

}  // namespace sfmamba::kernels
