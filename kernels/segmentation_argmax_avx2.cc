#include "kernels/segmentation_argmax_simd.h"
#include "kernels/vec8.h"

namespace sfmamba {

void SegmentationArgmaxAvx2(const SegmentationArgmaxArgs& args,
                            const ResizeTaps& rows, const ResizeTaps& columns,
                            float* row) {
  Classify<Vec8>(args, rows, columns, row);
}

}  // namespace sfmamba
