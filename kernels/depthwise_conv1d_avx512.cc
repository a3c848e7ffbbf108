#include "kernels/depthwise_conv1d_simd.h"
#include "kernels/vec16.h"

namespace sfmamba {

template <typename T>
void DepthwiseConv1dAvx512(const DepthwiseConv1dArgs<T>& args) {
  Convolve<Vec16>(args);
}

template void DepthwiseConv1dAvx512(const DepthwiseConv1dArgs<float>&);
template void DepthwiseConv1dAvx512(const DepthwiseConv1dArgs<BFloat16>&);

}  // namespace sfmamba
