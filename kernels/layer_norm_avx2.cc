#include "kernels/layer_norm_simd.h"
#include "kernels/vec8.h"

namespace sfmamba {

template <typename T>
void LayerNormAvx2(const LayerNormArgs<T>& args) {
  Normalize<Vec8>(args);
}

template void LayerNormAvx2(const LayerNormArgs<float>&);
template void LayerNormAvx2(const LayerNormArgs<BFloat16>&);

}  // namespace sfmamba
