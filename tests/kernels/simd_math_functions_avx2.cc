#include "kernels/vec8.h"
#include "tests/kernels/simd_math_functions_simd.h"

namespace sfmamba {

SimdMathFunctions Avx2MathFunctions() { return Arrays<Vec8>::Functions(); }

}  // namespace sfmamba
