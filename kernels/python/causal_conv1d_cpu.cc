#include <type_traits>

#include "kernels/python/causal_conv1d.h"
#include "kernels/python/scalar.h"
// Must be included after scalar.h, because it calls functions of scalar.h.
#include "kernels/python/causal_conv1d_simd.h"

namespace sfmamba::kernels {

template <typename T>
void CausalConv1d(const CausalConv1dArgs<T>& args, Strided<T> out, CpuIsa isa) {
  if constexpr (!std::is_same_v<T, double>) {
    if (isa == CpuIsa::kAvx512) return CausalConv1dAvx512(args, out);
    if (isa == CpuIsa::kAvx2) return CausalConv1dAvx2(args, out);
  }
  Convolve<Scalar<Arithmetic<T>>>(args, out);
}

template <typename T>
void CausalConv1dGradient(const CausalConv1dArgs<T>& args,
                          const CausalConv1dBackward<T>& gradients,
                          CpuIsa isa) {
  if constexpr (!std::is_same_v<T, double>) {
    if (isa == CpuIsa::kAvx512)
      return CausalConv1dGradientAvx512(args, gradients);
    if (isa == CpuIsa::kAvx2) return CausalConv1dGradientAvx2(args, gradients);
  }
  ConvolveGradient<Scalar<Arithmetic<T>>>(args, gradients);
}

template void CausalConv1d(const CausalConv1dArgs<float>&, Strided<float>,
                           CpuIsa);
template void CausalConv1d(const CausalConv1dArgs<BFloat16>&, Strided<BFloat16>,
                           CpuIsa);
template void CausalConv1d(const CausalConv1dArgs<double>&, Strided<double>,
                           CpuIsa);
template void CausalConv1dGradient(const CausalConv1dArgs<float>&,
                                   const CausalConv1dBackward<float>&, CpuIsa);
template void CausalConv1dGradient(const CausalConv1dArgs<BFloat16>&,
                                   const CausalConv1dBackward<BFloat16>&,
                                   CpuIsa);
template void CausalConv1dGradient(const CausalConv1dArgs<double>&,
                                   const CausalConv1dBackward<double>&, CpuIsa);

}  // namespace sfmamba::kernels
