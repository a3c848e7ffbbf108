#ifndef SFMAMBA_KERNELS_LINEAR_INT8_CONVOLUTION_H_
#define SFMAMBA_KERNELS_LINEAR_INT8_CONVOLUTION_H_

#include <cstdint>

#include "kernels/linear/int8_gemm.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// A convolution with an odd kernel and padding (kernel - 1) / 2 of values that
// are rounded to 8 bits, as products with the weights of int8_gemm.h. All
// values of a map have one scale, their largest magnitude / 127; each output's
// weights have their own. Products read the rounded map where it lies.
//
// A pixel's outputs are bit-identical whatever the other maps, the requested
// rows and outputs and the thread are. A NaN or an infinity makes NaN of all
// outputs of its map.

// Maps with their padding, rounded.
struct QuantizeMapsArgs {
  int count, height, width, channels;
  int margin;      // Pixels of padding on each side.
  const float* x;  // [count, height, width, channels]
  // [count, height + 2 margin, width + 2 margin, channels], written: multiples
  // of the map's scale plus 128. Padding is 128.
  uint8_t* values;
  const float* largest;  // [count], the maps' largest magnitudes.
};

// Computes rows [begin, end) of the count * (height + 2 margin) of all maps
// with their padding.
void QuantizeMapRowsCpu(const QuantizeMapsArgs& args, int64_t begin,
                        int64_t end, CpuIsa isa = ActiveCpuIsa());

enum class Int8Activation { kNone, kRelu, kRelu6, kGeluTanh };

struct Int8ConvolutionArgs {
  int count, height, width;  // The number and size of the input's maps.
  int in, out;               // Channels; `in` is a multiple of 4.
  int kernel, stride;
  const uint8_t* x;      // From QuantizeMapRowsCpu() with margin kernel / 2.
  const float* largest;  // [count], the maps' largest magnitudes.
  // Weights [out, kernel * kernel * in], a tap's channels side by side.
  Int8Weights weights;
  const float* bias;          // [out] or null.
  Int8Activation activation;  // Keeps NaNs.
  bool add;                   // y += instead of y =.
  // [count, ceil(height / stride), ceil(width / stride), out], written.
  float* y;
  int64_t y_stride;  // Between pixels.
};

// Returns the arguments for output channels [begin, end) of the same
// convolution. The first must be a multiple of Int8PanelWidth().
Int8ConvolutionArgs SliceOutputs(Int8ConvolutionArgs args, int64_t begin,
                                 int64_t end);

// Computes rows [begin, end) of all output maps. Runs on the calling thread.
void Int8ConvolutionCpu(const Int8ConvolutionArgs& args, int64_t begin,
                        int64_t end, CpuIsa isa = ActiveCpuIsa());

// The functions above choose among these. `isa` says how weights are packed.
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
