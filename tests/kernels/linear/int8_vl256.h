#ifndef SFMAMBA_TESTS_KERNELS_LINEAR_INT8_VL256_H_
#define SFMAMBA_TESTS_KERNELS_LINEAR_INT8_VL256_H_

#include <cstdint>

#include "kernels/linear/int8_convolution.h"
#include "kernels/linear/int8_gemm.h"

namespace sfmamba::kernels {

// These are the AVX-VNNI kernels, in the encoding for CPUs with AVX512-VNNI.
void Int8GemmVl256(const Int8GemmArgs& args);
void QuantizeRowsVl256(const QuantizeArgs& args);
void Int8ConvolutionVl256(const Int8ConvolutionArgs& args, int64_t begin,
                          int64_t end);
void QuantizeMapRowsVl256(const QuantizeMapsArgs& args, int64_t begin,
                          int64_t end);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_LINEAR_INT8_VL256_H_
