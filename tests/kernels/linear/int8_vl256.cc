#include "tests/kernels/linear/int8_vl256.h"

#include "kernels/linear/int8_convolution_simd.h"
#include "kernels/linear/int8_gemm_simd.h"
#include "kernels/simd/ints8.h"

namespace sfmamba::kernels {

void Int8GemmVl256(const Int8GemmArgs& args) { Int8Gemm<Ints8>(args); }

void QuantizeRowsVl256(const QuantizeArgs& args) { QuantizeRows<Ints8>(args); }

void Int8ConvolutionVl256(const Int8ConvolutionArgs& args, int64_t begin,
                          int64_t end) {
  Int8Convolution<Ints8>(args, begin, end);
}

void QuantizeMapRowsVl256(const QuantizeMapsArgs& args, int64_t begin,
                          int64_t end) {
  QuantizeMapRows<Ints8>(args, begin, end);
}

}  // namespace sfmamba::kernels
