#ifndef SFMAMBA_KERNELS_LINEAR_INT8_GEMM_H_
#define SFMAMBA_KERNELS_LINEAR_INT8_GEMM_H_

#include <cstdint>

#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// The matrix product y = x W^T + bias, or y += x W^T + bias, with x and W
// rounded to 8 bits.
//
// Each row of x has a scale, which is the largest magnitude in the row / 127.
// The weights of each output have such a scale, too. Each value is divided by
// its scale and rounded to the nearest integer. Scales, bias and y are fp32.
//
// The products of the integers are exact, and so are the sums of the products.
// A row's outputs therefore have the same bits whatever the other rows contain,
// whichever outputs are requested, and whichever thread computes them.
//
// If the largest magnitude in a row is below 1e-30, the row has the scale 0 and
// is treated as a row of zeros. If a row contains an infinity or a NaN, the row
// is multiplied as floats by the rounded weights.

// Returns the distance in bytes from one row of `in` rounded values to the
// next. A rounded value has one byte. The distance is an odd number of cache
// lines. If it were a multiple of the page size, all rows would use the same
// cache sets.
inline int64_t QuantizedStride(int64_t in) { return ((in + 63) / 64 | 1) * 64; }

// The scale of values whose largest magnitude is `largest`, and its inverse.
// Both are 0 if `largest` is below kSmallest.
struct QuantizeScale {
  explicit QuantizeScale(float largest);

  static constexpr float kSmallest = 1e-30f;
  float scale, inverse;
};

// Returns the largest magnitude in x, or a NaN if a value is not finite.
float LargestMagnitudeCpu(const float* x, int64_t count,
                          CpuIsa isa = ActiveCpuIsa());

struct QuantizeArgs {
  int64_t rows, in;
  const float* x;  // [rows, in], rows x_stride apart
  int64_t x_stride;
  // [rows, in], rows QuantizedStride(in) apart, written. A value v becomes
  // v / scale, rounded to an integer, plus 128. If the scale is 0, it becomes
  // 128. The bytes between the end of a row and the next row are 128, too.
  uint8_t* values;
  // [rows], written. If a row of x is not finite, its scale is a NaN, and its
  // values are unspecified.
  float* scales;
};

// Returns the arguments for rows [begin, end).
QuantizeArgs SliceRows(QuantizeArgs args, int64_t begin, int64_t end);

void QuantizeRowsCpu(const QuantizeArgs& args, CpuIsa isa = ActiveCpuIsa());

// Weights that PackInt8Weights() has rounded and packed. This struct does not
// own the arrays.
struct Int8Weights {
  // Panels of Int8PanelWidth() outputs. A panel has the layout [inputs / 4,
  // outputs, 4]: the weights of four inputs are adjacent for each output.
  // Padding is 0.
  int8_t* values;
  float* scales;  // [outputs of all panels]
  // [outputs of all panels]: 128 times the sum of an output's values. Because
  // 128 is added to each x, the sums of products are too large by this amount.
  int32_t* excess;
};

int64_t Int8PanelWidth(CpuIsa isa = ActiveCpuIsa());

// Returns the index in `values` of the weight of output o and input k.
int64_t Int8WeightIndex(int64_t in, int64_t o, int64_t k, CpuIsa isa);

// Int8PackedOutputs() returns the number of outputs of all panels, including
// padding. This is the size of `scales` and of `excess`. Int8PackedSize()
// returns the size of `values`.
int64_t Int8PackedOutputs(int64_t out, CpuIsa isa = ActiveCpuIsa());
int64_t Int8PackedSize(int64_t in, int64_t out, CpuIsa isa = ActiveCpuIsa());

// Rounds the contiguous weights [out, in] and packs them into `packed`, whose
// arrays must have the sizes above. If a weight of an output is not finite, the
// output's scale is a NaN.
void PackInt8Weights(const float* weights, int64_t in, int64_t out,
                     const Int8Weights& packed, CpuIsa isa = ActiveCpuIsa());

struct Int8GemmArgs {
  int64_t rows;
  int64_t in, out;  // `in` is at most 2^17, because sums have 32 bits.
  // [rows, in], rows x_stride apart. These are the values before rounding.
  const float* x;
  int64_t x_stride;
  const uint8_t* x_values;  // Written by QuantizeRowsCpu().
  const float* x_scales;    // Written by QuantizeRowsCpu().
  // The weights must be packed for the isa that is passed to Int8GemmCpu().
  Int8Weights weights;
  const float* bias;  // [out] or null.
  bool add;           // Adds to y instead of overwriting it.
  float* y;           // [rows, out], rows y_stride apart, written
  int64_t y_stride;
  // Computes y = gelu(x W^T + bias) in the erf form. Not allowed with `add`.
  bool gelu = false;
};

// These return the arguments for rows or outputs [begin, end) of the same
// product. In SliceOutputs(), `begin` must be a multiple of Int8PanelWidth().
Int8GemmArgs SliceRows(Int8GemmArgs args, int64_t begin, int64_t end);
Int8GemmArgs SliceOutputs(Int8GemmArgs args, int64_t begin, int64_t end);

// Runs on the calling thread. Uses the instructions of Int8InstructionsOf(isa).
// If there are none, computes the outputs one by one.
void Int8GemmCpu(const Int8GemmArgs& args, CpuIsa isa = ActiveCpuIsa());

// The int8 instructions that kernels use for an instruction set on this CPU.
enum class Int8Instructions { kNone, kAvxVnni, kAvx512Vnni };
Int8Instructions Int8InstructionsOf(CpuIsa isa);

// Int8GemmCpu() calls one of these, depending on the instruction set. All rows
// must be finite. `isa` is the instruction set for which the weights are
// packed.
void Int8GemmScalar(const Int8GemmArgs& args, CpuIsa isa = ActiveCpuIsa());
void Int8GemmAvxVnni(const Int8GemmArgs& args);
void Int8GemmAvx512(const Int8GemmArgs& args);
// QuantizeRowsCpu() calls one of these, depending on the instruction set.
void QuantizeRowsScalar(const QuantizeArgs& args);
void QuantizeRowsAvxVnni(const QuantizeArgs& args);
void QuantizeRowsAvx512(const QuantizeArgs& args);
// LargestMagnitudeCpu() calls one of these, depending on the instruction set.
float LargestMagnitudeScalar(const float* x, int64_t count);
float LargestMagnitudeAvxVnni(const float* x, int64_t count);
float LargestMagnitudeAvx512(const float* x, int64_t count);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_INT8_GEMM_H_
