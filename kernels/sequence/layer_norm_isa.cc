#include "kernels/sequence/layer_norm_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

template <typename T, typename Y>
void LayerNormIsa(const LayerNormArgs<T, Y>& args) {
  Normalize<VecIsa>(args);
}

template void LayerNormIsa(const LayerNormArgs<float>&);
template void LayerNormIsa(const LayerNormArgs<BFloat16>&);
template void LayerNormIsa(const LayerNormArgs<float, BFloat16>&);

}  // namespace sfmamba::kernels
