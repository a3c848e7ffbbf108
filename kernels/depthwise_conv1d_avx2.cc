#include "kernels/depthwise_conv1d_simd.h"
#include "kernels/vec8.h"

namespace sfmamba {

template <typename T>
void DepthwiseConv1dAvx2(const DepthwiseConv1dArgs<T>& args) {
  Convolve<Vec8>(args);
}

template void DepthwiseConv1dAvx2(const DepthwiseConv1dArgs<float>&);
template void DepthwiseConv1dAvx2(const DepthwiseConv1dArgs<BFloat16>&);

}  // namespace sfmamba
