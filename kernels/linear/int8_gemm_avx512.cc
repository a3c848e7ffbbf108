#include "kernels/linear/int8_gemm_simd.h"
#include "kernels/simd/ints16.h"

namespace sfmamba::kernels {

void Int8GemmAvx512(const Int8GemmArgs& args) { Int8Gemm<Ints16>(args); }

float LargestMagnitudeAvx512(const float* x, int64_t count) {
  return LargestMagnitude<Vec16>(x, count);
}

void QuantizeRowsAvx512(const QuantizeArgs& args) {
  QuantizeRows<Ints16>(args);
}

}  // namespace sfmamba::kernels
