#include "kernels/sequence/depthwise_conv1d_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

template <typename T>
void DepthwiseConv1dIsa(const DepthwiseConv1dArgs<T>& args) {
  Convolve<VecIsa>(args);
}

template void DepthwiseConv1dIsa(const DepthwiseConv1dArgs<float>&);
template void DepthwiseConv1dIsa(const DepthwiseConv1dArgs<BFloat16>&);

}  // namespace sfmamba::kernels
