#ifndef SFMAMBA_KERNELS_LINEAR_GEMM_CONVOLUTION_H_
#define SFMAMBA_KERNELS_LINEAR_GEMM_CONVOLUTION_H_

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// A convolution with an odd kernel and padding (kernel - 1) / 2, as products
// with packed weights of type W (see packed_gemm.h): the inputs that a block of
// output pixels reads are gathered as rows, and padding reads zeros.
//
// A pixel's outputs are bit-identical whatever the other pixels, the requested
// outputs and the thread are. A NaN or an infinity affects only the pixels that
// read it and, with BFloat16 weights and AMX, pixels of its map that read up to
// 32 values before it.
template <typename W = float>
struct GemmConvolutionArgs {
  int count, height, width;  // The number and size of the input's maps.
  int in, out;               // Channels.
  int kernel, stride;
  const float* x;  // [count, height, width, in]
  // PackWeights() of [out, depth] of RunsOf() for the same isa.
  const W* weights;
  const float* bias;  // [out] or null.
  float low, high;    // y is clamped to [low, high] last. NaN stays NaN.
  bool add;           // y += instead of y =.
  // [count, ceil(height / stride), ceil(width / stride), out], pixels y_stride
  // apart, written.
  float* y;
  int64_t y_stride;

  // y = gelu(y) in the tanh form. Without `add`.
  bool gelu = false;
  // Take the place of x and y if they are not null; y is rounded last. With
  // BFloat16 weights only, and y_bf16 without `add`.
  const BFloat16* x_bf16 = nullptr;
  BFloat16* y_bf16 = nullptr;
};

// The packed weights of an output are those of `runs` runs of inputs, each
// followed by zeros from `length` up to `packed_length` inputs: of the whole
// kernel or, for tiles, of each of its rows or pixels.
struct ConvolutionRuns {
  int64_t runs, length, packed_length;

  int64_t depth() const { return runs * packed_length; }
};
template <typename W>
ConvolutionRuns RunsOf(int64_t in, int64_t kernel, CpuIsa isa = ActiveCpuIsa());

// Returns the arguments for output channels [begin, end) of the same
// convolution. The first must be a multiple of PanelWidth<W>().
template <typename W>
GemmConvolutionArgs<W> SliceOutputs(GemmConvolutionArgs<W> args, int64_t begin,
                                    int64_t end, CpuIsa isa = ActiveCpuIsa());

// Returns the number of pixels in all output maps.
template <typename W>
int64_t GemmConvolutionPixels(const GemmConvolutionArgs<W>& args);

// Computes output pixels [begin, end). Runs on the calling thread.
template <typename W>
void GemmConvolutionCpu(const GemmConvolutionArgs<W>& args, int64_t begin,
                        int64_t end, CpuIsa isa = ActiveCpuIsa());

// GemmConvolutionCpu() does so with AMX and a kernel of more than one pixel.
void GemmConvolutionAmx(const GemmConvolutionArgs<BFloat16>& args,
                        int64_t begin, int64_t end);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_GEMM_CONVOLUTION_H_
