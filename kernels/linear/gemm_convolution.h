#ifndef SFMAMBA_KERNELS_LINEAR_GEMM_CONVOLUTION_H_
#define SFMAMBA_KERNELS_LINEAR_GEMM_CONVOLUTION_H_

#include <cstdint>

#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// A convolution with an odd kernel and padding (kernel - 1) / 2, as products
// with packed weights of type W (see packed_gemm.h): the inputs that a block of
// output pixels reads are gathered as rows, and padding reads zeros.
//
// A pixel's outputs are bit-identical whatever the other pixels and the thread
// are. A NaN affects only the pixels that read it.
template <typename W = float>
struct GemmConvolutionArgs {
  int count, height, width;  // The number and size of the input's maps.
  int in, out;               // Channels.
  int kernel, stride;
  const float* x;  // [count, height, width, in]
  // PackWeights() of [out, kernel * kernel * in], for the same isa.
  const W* weights;
  const float* bias;  // [out] or null.
  float low, high;    // y is clamped to [low, high] last. NaN stays NaN.
  bool add;           // y += instead of y =.
  // [count, ceil(height / stride), ceil(width / stride), out], written.
  float* y;
};

// Returns the number of pixels in all output maps.
template <typename W>
int64_t GemmConvolutionPixels(const GemmConvolutionArgs<W>& args);

// Computes output pixels [begin, end). Runs on the calling thread.
template <typename W>
void GemmConvolutionCpu(const GemmConvolutionArgs<W>& args, int64_t begin,
                        int64_t end, CpuIsa isa = ActiveCpuIsa());

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_GEMM_CONVOLUTION_H_
