#include "kernels/sequence/token_mean_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

template <typename T>
void TokenMeanIsa(const TokenMeanArgs<T>& args) {
  Mean<VecIsa>(args);
}

template void TokenMeanIsa(const TokenMeanArgs<float>&);
template void TokenMeanIsa(const TokenMeanArgs<BFloat16>&);

}  // namespace sfmamba::kernels
