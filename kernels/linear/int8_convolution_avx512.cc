#include "kernels/linear/int8_convolution_simd.h"
#include "kernels/simd/ints16.h"

namespace sfmamba::kernels {

void Int8ConvolutionAvx512(const Int8ConvolutionArgs& args, int64_t begin,
                           int64_t end) {
  Int8Convolution<Ints16>(args, begin, end);
}

void QuantizeMapRowsAvx512(const QuantizeMapsArgs& args, int64_t begin,
                           int64_t end) {
  QuantizeMapRows<Ints16>(args, begin, end);
}

}  // namespace sfmamba::kernels
