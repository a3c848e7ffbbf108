#ifndef SFMAMBA_KERNELS_LINEAR_GEMM_CONVOLUTION_H_
#define SFMAMBA_KERNELS_LINEAR_GEMM_CONVOLUTION_H_

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// A convolution, computed as a matrix product. The size of the kernel is odd,
// and each map is padded with (kernel - 1) / 2 zeros on each side. The inputs
// that an output pixel reads are gathered in a row. A block of such rows is
// multiplied by packed weights of type W (see packed_gemm.h).
//
// A pixel's outputs have the same bits whatever the other pixels contain,
// whichever outputs are requested, and whichever thread computes them. A NaN or
// an infinity affects only the output pixels that read it.
//
// BFloat16 weights with AMX are an exception if a row of the kernel has fewer
// than 32 inputs. A tile loads these inputs from a padded copy of the map. It
// loads 32 values, so it also loads values that follow the inputs in the copy.
// These are multiplied by 0. If one of them is a NaN or an infinity, the output
// becomes NaN. All values in a copy belong to the same map.
template <typename W = float>
struct GemmConvolutionArgs {
  int count, height, width;  // The number and size of the input's maps.
  int in, out;               // Channels.
  int kernel, stride;
  const float* x;  // [count, height, width, in]
  // The weights [out, depth] as packed by PackWeights(), where depth is
  // RunsOf<W>(in, kernel, isa).depth(). `isa` must be the instruction set that
  // is passed to GemmConvolutionCpu().
  const W* weights;
  const float* bias;  // [out] or null.
  float low, high;    // Limits of y, applied last. NaN stays NaN.
  bool add;           // Adds to y instead of overwriting it.
  // [count, ceil(height / stride), ceil(width / stride), out], pixels y_stride
  // apart, written.
  float* y;
  int64_t y_stride;

  // Applies GELU in the tanh form to y. Not allowed with `add`.
  bool gelu = false;
  // If x_bf16 is not null, it is read instead of x. If y_bf16 is not null, it
  // is written instead of y, and outputs are rounded after the activation. Both
  // are allowed only with BFloat16 weights. y_bf16 is not allowed with `add`.
  const BFloat16* x_bf16 = nullptr;
  BFloat16* y_bf16 = nullptr;
};

// The order of the packed weights of one output channel. They are divided into
// `runs` runs of `length` weights. Each run is padded with zeros to
// `packed_length` weights. A run has the weights of the whole kernel. For AMX
// tiles, a run has only the weights of one row or one pixel of the kernel.
struct ConvolutionRuns {
  int64_t runs, length, packed_length;

  int64_t depth() const { return runs * packed_length; }
};
template <typename W>
ConvolutionRuns RunsOf(int64_t in, int64_t kernel, CpuIsa isa = ActiveCpuIsa());

// Returns the arguments for output channels [begin, end) of the same
// convolution. `begin` must be a multiple of PanelWidth<W>().
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

// GemmConvolutionCpu() calls this if AMX is available and the kernel is larger
// than 1x1.
void GemmConvolutionAmx(const GemmConvolutionArgs<BFloat16>& args,
                        int64_t begin, int64_t end);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_GEMM_CONVOLUTION_H_
