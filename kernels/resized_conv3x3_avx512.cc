#include "kernels/resized_conv3x3_simd.h"
#include "kernels/vec16.h"

namespace sfmamba {

void ResizedConv3x3Avx512(const ResizedConv3x3Args& args,
                          const ResizeTaps& rows, const ResizeTaps& columns,
                          float* scratch) {
  ResizedConv3x3<Vec16>(args, rows, columns, scratch);
}

}  // namespace sfmamba
