#include "kernels/linear/silu_simd.h"
#include "kernels/simd/vec_isa.h"

namespace sfmamba::kernels {

template <typename T>
void SiluIsa(const T* x, int64_t count, T* y) {
  ForEachVector<VecIsa>(count, [&](int64_t i, int lanes) {
    StoreLanes(Silu()(LoadLanes<VecIsa>(x + i, lanes)), y + i, lanes);
  });
}

template void SiluIsa(const float*, int64_t, float*);
template void SiluIsa(const BFloat16*, int64_t, BFloat16*);

}  // namespace sfmamba::kernels
