#include "kernels/sequence/attention_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

void SoftmaxBlockIsa(const ScoreBlock& block) { SoftmaxBlock<VecIsa>(block); }

}  // namespace sfmamba::kernels
