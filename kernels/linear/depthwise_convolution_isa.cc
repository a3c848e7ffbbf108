#include "kernels/linear/depthwise_convolution_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

void DepthwiseConvolutionIsa(const DepthwiseConvolutionArgs& args,
                             int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) ConvolveRow<VecIsa>(args, row);
}

}  // namespace sfmamba::kernels
