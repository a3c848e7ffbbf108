#ifndef SFMAMBA_KERNELS_LINEAR_INT8_CONVOLUTION_H_
#define SFMAMBA_KERNELS_LINEAR_INT8_CONVOLUTION_H_

#include <cstdint>

#include "kernels/linear/int8_gemm.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// A convolution of values that are rounded to 8 bits, with the weights of
// int8_gemm.h. The size of the kernel is odd, and each map is padded with
// (kernel - 1) / 2 zeros on each side. All values of a map have one scale,
// which is the map's largest magnitude / 127. The weights of each output have
// their own scale. The convolution reads its inputs directly from the rounded
// maps. It does not first copy (gather) the inputs of each output pixel.
//
// A pixel's outputs have the same bits whatever the other maps contain,
// whichever rows and outputs are requested, and whichever thread computes them.
// If a map contains a NaN or an infinity, all its outputs are NaN.

// Arguments to round maps to 8 bits and to add padding.
struct QuantizeMapsArgs {
  int count, height, width, channels;
  int margin;      // Pixels of padding on each side.
  const float* x;  // [count, height, width, channels]
  // [count, height + 2 margin, width + 2 margin, channels], written. A value v
  // becomes v / scale, rounded, plus 128. Padding is 128.
  uint8_t* values;
  const float* largest;  // [count], the largest magnitude of each map.
};

// Rounds rows [begin, end). Including padding, all maps together have count *
// (height + 2 margin) rows.
void QuantizeMapRowsCpu(const QuantizeMapsArgs& args, int64_t begin,
                        int64_t end, CpuIsa isa = ActiveCpuIsa());

enum class Int8Activation { kNone, kRelu, kRelu6, kGeluTanh };

struct Int8ConvolutionArgs {
  int count, height, width;  // The number and size of the input's maps.
  int in, out;               // Channels; `in` is a multiple of 4.
  int kernel, stride;
  // Made by QuantizeMapRowsCpu() with margin kernel / 2.
  const uint8_t* x;
  const float* largest;  // [count], the largest magnitude of each map.
  // Packed by PackInt8Weights() from a matrix [out, kernel * kernel * in], for
  // the isa that is passed to Int8ConvolutionCpu(). The channels of a kernel
  // position are adjacent.
  Int8Weights weights;
  const float* bias;          // [out] or null.
  Int8Activation activation;  // A NaN stays a NaN.
  bool add;                   // Adds to y instead of overwriting it.
  // [count, ceil(height / stride), ceil(width / stride), out], written.
  float* y;
  int64_t y_stride;  // The distance of pixels in y, in values.
};

// Returns the arguments for output channels [begin, end) of the same
// convolution. `begin` must be a multiple of Int8PanelWidth().
Int8ConvolutionArgs SliceOutputs(Int8ConvolutionArgs args, int64_t begin,
                                 int64_t end);

// Computes rows [begin, end) of the output maps, counted over all maps. Runs on
// the calling thread.
void Int8ConvolutionCpu(const Int8ConvolutionArgs& args, int64_t begin,
                        int64_t end, CpuIsa isa = ActiveCpuIsa());

// Int8ConvolutionCpu() and QuantizeMapRowsCpu() call one of these, depending on
// the instruction set. `isa` is the instruction set for which the weights are
// packed.
void Int8ConvolutionScalar(const Int8ConvolutionArgs& args, int64_t begin,
                           int64_t end, CpuIsa isa = ActiveCpuIsa());
void Int8ConvolutionAvxVnni(const Int8ConvolutionArgs& args, int64_t begin,
                            int64_t end);
void Int8ConvolutionAvx512(const Int8ConvolutionArgs& args, int64_t begin,
                           int64_t end);
void QuantizeMapRowsScalar(const QuantizeMapsArgs& args, int64_t begin,
                           int64_t end);
void QuantizeMapRowsAvxVnni(const QuantizeMapsArgs& args, int64_t begin,
                            int64_t end);
void QuantizeMapRowsAvx512(const QuantizeMapsArgs& args, int64_t begin,
                           int64_t end);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_INT8_CONVOLUTION_H_
