#include "kernels/sequence/attention_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

template <typename W>
void SoftmaxBlockIsa(const ScoreBlock<W>& block) {
  SoftmaxBlock<VecIsa>(block);
}

template void SoftmaxBlockIsa(const ScoreBlock<float>&);
template void SoftmaxBlockIsa(const ScoreBlock<BFloat16>&);

template <typename W>
void ScaleRowsIsa(const ScaleRowsArgs<W>& args) {
  ScaleRows<VecIsa>(args);
}

template void ScaleRowsIsa(const ScaleRowsArgs<float>&);
template void ScaleRowsIsa(const ScaleRowsArgs<BFloat16>&);

}  // namespace sfmamba::kernels
