#include "kernels/layer_norm_simd.h"
#include "kernels/vec16.h"

namespace sfmamba {

template <typename T>
void LayerNormAvx512(const LayerNormArgs<T>& args) {
  Normalize<Vec16>(args);
}

template void LayerNormAvx512(const LayerNormArgs<float>&);
template void LayerNormAvx512(const LayerNormArgs<BFloat16>&);

}  // namespace sfmamba
