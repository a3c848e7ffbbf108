#include "kernels/token_mean_simd.h"
#include "kernels/vec16.h"

namespace sfmamba {

template <typename T>
void TokenMeanAvx512(const TokenMeanArgs<T>& args) {
  Mean<Vec16>(args);
}

template void TokenMeanAvx512(const TokenMeanArgs<float>&);
template void TokenMeanAvx512(const TokenMeanArgs<BFloat16>&);

}  // namespace sfmamba
