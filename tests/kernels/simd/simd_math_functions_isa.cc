#include "kernels/simd/vec_isa.h"
#include "tests/kernels/simd/simd_math_functions_simd.h"

namespace sfmamba::kernels {

SimdMathFunctions MathFunctionsIsa() { return Arrays<VecIsa>::Functions(); }

}  // namespace sfmamba::kernels
