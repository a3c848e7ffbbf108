#include "kernels/packed_gemm_simd.h"
#include "kernels/vec8.h"

namespace sfmamba {

void PackedGemmAvx2(const PackedGemmArgs& args) { PackedGemm<Vec8>(args); }

}  // namespace sfmamba
