#include "kernels/token_mean_simd.h"
#include "kernels/vec8.h"

namespace sfmamba {

template <typename T>
void TokenMeanAvx2(const TokenMeanArgs<T>& args) {
  Mean<Vec8>(args);
}

template void TokenMeanAvx2(const TokenMeanArgs<float>&);
template void TokenMeanAvx2(const TokenMeanArgs<BFloat16>&);

}  // namespace sfmamba
