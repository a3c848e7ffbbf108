#ifndef SFMAMBA_KERNELS_LINEAR_DEPTHWISE_CONVOLUTION_H_
#define SFMAMBA_KERNELS_LINEAR_DEPTHWISE_CONVOLUTION_H_

#include <cstdint>

#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// A depthwise convolution in fp32: each channel is convolved separately. The
// size of the kernel is odd. Each map is padded with (kernel - 1) / 2 zeros on
// each side.
//
// A pixel's outputs have the same bits whatever the other pixels contain and
// whichever thread computes them. A NaN affects only the pixels that read it.
struct DepthwiseConvolutionArgs {
  int count, height, width;  // The number and size of the input's maps.
  int channels;
  int kernel, stride;
  const float* x;       // [count, height, width, channels]
  const float* weight;  // [kernel, kernel, channels]
  const float* bias;    // [channels] or null.
  float low, high;      // y is clamped to [low, high]. NaN stays NaN.
  // [count, ceil(height / stride), ceil(width / stride), channels], written.
  float* y;
};

// Returns the number of rows in all output maps.
int64_t DepthwiseConvolutionRows(const DepthwiseConvolutionArgs& args);

// Computes rows [begin, end) of the output maps. Runs on the calling thread.
void DepthwiseConvolutionCpu(const DepthwiseConvolutionArgs& args,
                             int64_t begin, int64_t end,
                             CpuIsa isa = ActiveCpuIsa());

// One function per instruction set. The CPU must support the instruction set.
void DepthwiseConvolutionScalar(const DepthwiseConvolutionArgs& args,
                                int64_t begin, int64_t end);
void DepthwiseConvolutionAvx2(const DepthwiseConvolutionArgs& args,
                              int64_t begin, int64_t end);
void DepthwiseConvolutionAvx512(const DepthwiseConvolutionArgs& args,
                                int64_t begin, int64_t end);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_DEPTHWISE_CONVOLUTION_H_
