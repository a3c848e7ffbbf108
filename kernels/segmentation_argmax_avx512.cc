#include "kernels/segmentation_argmax_simd.h"
#include "kernels/vec16.h"

namespace sfmamba {

void SegmentationArgmaxAvx512(const SegmentationArgmaxArgs& args,
                              const ResizeTaps& rows, const ResizeTaps& columns,
                              float* row) {
  Classify<Vec16>(args, rows, columns, row);
}

}  // namespace sfmamba
