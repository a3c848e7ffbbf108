#include "kernels/segmentation/window_average_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

void WindowAverageIsa(const WindowAverageArgs& args, const float* counts,
                      float* scratch) {
  Average<VecIsa>(args, counts, scratch);
}

}  // namespace sfmamba::kernels
