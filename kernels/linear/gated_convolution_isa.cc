#include "kernels/linear/gated_convolution_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

template <typename T>
void GatedConvolutionIsa(const GatedConvolutionArgs<T>& args, int64_t begin,
                         int64_t end) {
  GatedConvolution<VecIsa>(args, begin, end);
}

template void GatedConvolutionIsa(const GatedConvolutionArgs<float>&, int64_t,
                                  int64_t);
template void GatedConvolutionIsa(const GatedConvolutionArgs<BFloat16>&,
                                  int64_t, int64_t);

}  // namespace sfmamba::kernels
