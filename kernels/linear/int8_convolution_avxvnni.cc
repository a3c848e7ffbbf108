#include "kernels/linear/int8_convolution_simd.h"
#include "kernels/simd/ints8.h"

namespace sfmamba::kernels {

void Int8ConvolutionAvxVnni(const Int8ConvolutionArgs& args, int64_t begin,
                            int64_t end) {
  Int8Convolution<Ints8>(args, begin, end);
}

void QuantizeMapRowsAvxVnni(const QuantizeMapsArgs& args, int64_t begin,
                            int64_t end) {
  QuantizeMapRows<Ints8>(args, begin, end);
}

}  // namespace sfmamba::kernels
