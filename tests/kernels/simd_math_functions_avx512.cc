#include "kernels/vec16.h"
#include "tests/kernels/simd_math_functions_simd.h"

namespace sfmamba {

SimdMathFunctions Avx512MathFunctions() { return Arrays<Vec16>::Functions(); }

}  // namespace sfmamba
