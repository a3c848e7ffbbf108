#include "kernels/python/causal_conv1d_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

template <typename T>
void CausalConv1dIsa(const CausalConv1dArgs<T>& args, Strided<T> out) {
  Convolve<VecIsa>(args, out);
}

template <typename T>
void CausalConv1dGradientIsa(const CausalConv1dArgs<T>& args,
                             const CausalConv1dBackward<T>& gradients) {
  ConvolveGradient<VecIsa>(args, gradients);
}

template void CausalConv1dIsa(const CausalConv1dArgs<float>&, Strided<float>);
template void CausalConv1dIsa(const CausalConv1dArgs<BFloat16>&,
                              Strided<BFloat16>);
template void CausalConv1dGradientIsa(const CausalConv1dArgs<float>&,
                                      const CausalConv1dBackward<float>&);
template void CausalConv1dGradientIsa(const CausalConv1dArgs<BFloat16>&,
                                      const CausalConv1dBackward<BFloat16>&);

}  // namespace sfmamba::kernels
