#include "kernels/packed_gemm_simd.h"
#include "kernels/vec16.h"

namespace sfmamba {

void PackedGemmAvx512(const PackedGemmArgs& args) { PackedGemm<Vec16>(args); }

}  // namespace sfmamba
