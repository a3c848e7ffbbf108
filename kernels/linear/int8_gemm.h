#ifndef SFMAMBA_KERNELS_LINEAR_INT8_GEMM_H_
#define SFMAMBA_KERNELS_LINEAR_INT8_GEMM_H_

#include <cstdint>

#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// y = x W^T + bias, or y += x W^T + bias, with x and W rounded to 8 bits.
//
// Each row of x and each output's weights have a scale, their largest magnitude
// / 127, and are rounded to nearest multiples of it. Products and sums of the
// multiples are exact integers. Scales, bias and y are fp32. So a row's outputs
// are bit-identical whatever the other rows, the requested outputs and the
// thread are.
//
// A row of zeros, or of values below 1e-30, has the scale 0 and gives the bias.
// A row with an infinity or a NaN is multiplied as floats by the rounded
// weights.

// Returns the inputs that a row of rounded values has places for, and the bytes
// between such rows. The distance is an odd number of cache lines: with a
// multiple of the page's size all rows would lie in the same sets of the cache.
inline int64_t QuantizedStride(int64_t in) { return ((in + 63) / 64 | 1) * 64; }

// The scale of values whose largest magnitude is `largest`, and the factor from
// values to multiples of the scale. Both are 0 for values that count as zeros.
struct QuantizeScale {
  explicit QuantizeScale(float largest);

  static constexpr float kSmallest = 1e-30f;
  float scale, inverse;
};

// Returns the largest magnitude, or a NaN if a value is not finite.
float LargestMagnitudeCpu(const float* x, int64_t count,
                          CpuIsa isa = ActiveCpuIsa());

struct QuantizeArgs {
  int64_t rows, in;
  const float* x;  // [rows, in], rows x_stride apart
  int64_t x_stride;
  // [rows, in], rows QuantizedStride(in) apart, written: multiples of the scale
  // plus 128. The rest of a row is 128.
  uint8_t* values;
  // [rows], written. A NaN for rows that are not finite, whose values are
  // unspecified.
  float* scales;
};

// Returns the arguments for rows [begin, end).
QuantizeArgs SliceRows(QuantizeArgs args, int64_t begin, int64_t end);

void QuantizeRowsCpu(const QuantizeArgs& args, CpuIsa isa = ActiveCpuIsa());

// Weights that PackInt8Weights() has rounded and packed. Not owned.
struct Int8Weights {
  // Panels of Int8PanelWidth() outputs. In a panel the weights of four inputs
  // are contiguous, the four of an output side by side. Places without inputs
  // or outputs are 0.
  int8_t* values;
  float* scales;  // [outputs of all panels]
  // [outputs of all panels]: 128 times the sum of an output's values, which the
  // sums of products of x + 128 have too much.
  int32_t* excess;
};

int64_t Int8PanelWidth(CpuIsa isa = ActiveCpuIsa());

// Returns the place in `values` of the weight of output o and input k.
int64_t Int8WeightIndex(int64_t in, int64_t o, int64_t k, CpuIsa isa);

// The number of outputs of all panels, and of `values`.
int64_t Int8PackedOutputs(int64_t out, CpuIsa isa = ActiveCpuIsa());
int64_t Int8PackedSize(int64_t in, int64_t out, CpuIsa isa = ActiveCpuIsa());

// Rounds and packs weights [out, in], contiguous, into memory of the sizes
// above. The scale of an output with a weight that is not finite is a NaN.
void PackInt8Weights(const float* weights, int64_t in, int64_t out,
                     const Int8Weights& packed, CpuIsa isa = ActiveCpuIsa());

struct Int8GemmArgs {
  int64_t rows;
  int64_t in, out;  // in is at most 2^17: sums have 32 bits.
  const float* x;   // [rows, in], rows x_stride apart, before they were rounded
  int64_t x_stride;
  const uint8_t* x_values;  // From QuantizeRowsCpu().
  const float* x_scales;    // From QuantizeRowsCpu().
  Int8Weights weights;      // For the same isa.
  const float* bias;        // [out] or null.
  bool add;                 // y += instead of y =.
  float* y;                 // [rows, out], rows y_stride apart, written
  int64_t y_stride;
  // y = gelu(x W^T + bias) in the erf form, without `add`.
  bool gelu = false;
};

// Return the arguments for rows or outputs [begin, end) of the same product.
// The first output must be a multiple of Int8PanelWidth().
Int8GemmArgs SliceRows(Int8GemmArgs args, int64_t begin, int64_t end);
Int8GemmArgs SliceOutputs(Int8GemmArgs args, int64_t begin, int64_t end);

// Runs on the calling thread. Computes values one by one unless HasInt8() and
// `isa` is the one that has the instructions.
void Int8GemmCpu(const Int8GemmArgs& args, CpuIsa isa = ActiveCpuIsa());

// The instructions that kernels use with `isa`.
enum class Int8Instructions { kNone, kAvxVnni, kAvx512Vnni };
Int8Instructions Int8InstructionsOf(CpuIsa isa);

// Int8GemmCpu() chooses among these, whose rows must all be finite.
// `isa` says how the weights are packed.
void Int8GemmScalar(const Int8GemmArgs& args, CpuIsa isa = ActiveCpuIsa());
void Int8GemmAvxVnni(const Int8GemmArgs& args);
void Int8GemmAvx512(const Int8GemmArgs& args);
// QuantizeRowsCpu() chooses among these.
void QuantizeRowsScalar(const QuantizeArgs& args);
void QuantizeRowsAvxVnni(const QuantizeArgs& args);
void QuantizeRowsAvx512(const QuantizeArgs& args);
// LargestMagnitudeCpu() chooses among these.
float LargestMagnitudeScalar(const float* x, int64_t count);
float LargestMagnitudeAvxVnni(const float* x, int64_t count);
float LargestMagnitudeAvx512(const float* x, int64_t count);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_INT8_GEMM_H_
