#include "kernels/linear/packed_gemm_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

void PackedGemmIsa(const PackedGemmArgs& args) { PackedGemm<VecIsa>(args); }

}  // namespace sfmamba::kernels
