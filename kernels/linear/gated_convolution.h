#ifndef SFMAMBA_KERNELS_LINEAR_GATED_CONVOLUTION_H_
#define SFMAMBA_KERNELS_LINEAR_GATED_CONVOLUTION_H_

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/linear/silu.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// The height and the width of the kernel of a gated convolution, in taps.
constexpr int kGatedTaps = 7;

// The middle part of a gated block. A pixel of x holds a gate g [hidden], then
// values i [hidden - conv], then values c [conv]. A pixel of y is:
//
//   y = activation(g) * concat(i, convolution(c) + bias)
//
// The convolution is depthwise, 7x7, with zeros around the map.
// Source: MambaOut (arXiv 2405.07992), figure 1.
//
// A pixel's outputs have the same bits whatever the other pixels contain and
// whichever thread computes them. A NaN affects only the pixels that read it.
template <typename T>
struct GatedConvolutionArgs {
  int count, height, width;  // The number and size of the maps.
  int hidden;
  int conv;  // 1 to hidden.
  GateActivation activation;
  const T* x;           // [count, height, width, 2 * hidden]
  const float* weight;  // [7, 7, conv]
  const float* bias;    // [conv]
  T* y;                 // [count, height, width, hidden], written.
};

// Computes rows [begin, end) of y. Rows are counted over all maps, from 0 to
// count * height. T is float or BFloat16. The arithmetic is fp32. Runs on the
// calling thread.
template <typename T>
void GatedConvolutionCpu(const GatedConvolutionArgs<T>& args, int64_t begin,
                         int64_t end, CpuIsa isa = ActiveCpuIsa());

// One function per instruction set. The CPU must support the instruction set.
template <typename T>
void GatedConvolutionScalar(const GatedConvolutionArgs<T>& args, int64_t begin,
                            int64_t end);
template <typename T>
void GatedConvolutionAvx2(const GatedConvolutionArgs<T>& args, int64_t begin,
                          int64_t end);
template <typename T>
void GatedConvolutionAvx512(const GatedConvolutionArgs<T>& args, int64_t begin,
                            int64_t end);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_GATED_CONVOLUTION_H_
