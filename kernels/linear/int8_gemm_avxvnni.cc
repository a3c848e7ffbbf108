#include "kernels/linear/int8_gemm_simd.h"
#include "kernels/simd/ints8.h"

namespace sfmamba::kernels {

void Int8GemmAvxVnni(const Int8GemmArgs& args) { Int8Gemm<Ints8>(args); }

float LargestMagnitudeAvxVnni(const float* x, int64_t count) {
  return LargestMagnitude<Vec8>(x, count);
}

void QuantizeRowsAvxVnni(const QuantizeArgs& args) {
  QuantizeRows<Ints8>(args);
}

}  // namespace sfmamba::kernels
