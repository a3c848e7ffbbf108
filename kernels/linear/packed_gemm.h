#ifndef SFMAMBA_KERNELS_LINEAR_PACKED_GEMM_H_
#define SFMAMBA_KERNELS_LINEAR_PACKED_GEMM_H_

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// The matrix product y = x W^T + bias, or y += x W^T + bias. The weights have
// been packed beforehand. Their type W is float, BFloat16 or SplitFloat. Sums,
// bias and y are fp32.
//
// If the weights are BFloat16, x is rounded to the nearest bf16 values before
// the multiplication. x may also be bf16 already, and y may be rounded to bf16.
//
// Products are summed in the order of the inputs, in blocks that depend only on
// `in`. On one instruction set, a row's outputs therefore have the same bits
// whatever the other rows contain, whichever outputs are requested, and
// whichever thread computes them.
template <typename W>
struct GemmArgs {
  int64_t rows;
  int64_t in, out;
  const float* x;  // [rows, in], rows x_stride apart
  int64_t x_stride;
  // Packed by PackWeights() for the isa that is passed to PackedGemmCpu().
  const W* weights;
  const float* bias;  // [out] or null.
  bool add;           // Adds to y instead of overwriting it.
  float* y;           // [rows, out], rows y_stride apart, written
  int64_t y_stride;

  // If x_bf16 is not null, it is read instead of x. If y_bf16 is not null, it
  // is written instead of y. Both are allowed only with BFloat16 weights.
  // y_bf16 is not allowed with `add`.
  const BFloat16* x_bf16 = nullptr;
  BFloat16* y_bf16 = nullptr;
  // Computes y = gelu(x W^T + bias) in the erf form. Not allowed with `add`.
  // y_bf16 is rounded only after GELU.
  bool gelu = false;
};

// A float weight. To multiply it, a matrix product splits it into three bf16
// values, which are called parts. The first part has the first 8 bits of the
// significand, the second part the next 8 bits, and the third part the rest.
// The sum of the parts is therefore the weight.
struct SplitFloat {
  float value = 0;
};

// A product of floats that is computed from bf16 parts. Each weight and each x
// is split into three parts, which gives nine products of parts. The six
// largest are added up in fp32. The relative error of a product is below 2^-20,
// and about 2^-24 on average.
//
// AMX tiles round sums less often than a loop over floats. So the result is
// about as exact as with floats, or more exact. But AMX treats parts and
// products of parts below 2^-126 as 0. This adds an error below 2^-126 to an x
// or a weight, and below 2^-123 to a product.
//
// If a row of x contains an infinity or a NaN, the row is multiplied as floats.
// Otherwise the parts of an infinity would give NaN instead of infinity.
// Weights must be finite.
// Source: Henry, Tang and Heinecke (arXiv 1904.06376), section 3. Here the
// parts are truncated instead of rounded.
using SplitGemmArgs = GemmArgs<SplitFloat>;

using PackedGemmArgs = GemmArgs<float>;
using Bf16GemmArgs = GemmArgs<BFloat16>;

// Returns the number of outputs in a panel. Packed weights consist of panels,
// one after the other. The last panel is padded with zeros. Panels have these
// layouts:
//   float       [in, outputs]
//   BFloat16    [(in + 1) / 2, outputs, 2], where an odd last input is
//               followed by zeros
//   SplitFloat  [in, outputs], with zeros up to a multiple of 32 inputs
template <typename W = float>
int64_t PanelWidth(CpuIsa isa = ActiveCpuIsa());

// Returns the number of values in the packed weights.
template <typename W = float>
int64_t PackedWeightsSize(int64_t in, int64_t out, CpuIsa isa = ActiveCpuIsa());

// A matrix [out, in] with any strides, counted in elements.
struct WeightMatrix {
  const float* values;
  int64_t out_stride, in_stride;
};

// Packs `weights` into `packed`, which must hold PackedWeightsSize<W>() values.
template <typename W>
void PackWeights(const WeightMatrix& weights, int64_t in, int64_t out,
                 W* packed, CpuIsa isa = ActiveCpuIsa());
// Packs contiguous weights [out, in].
template <typename W>
void PackWeights(const float* weights, int64_t in, int64_t out, W* packed,
                 CpuIsa isa = ActiveCpuIsa()) {
  PackWeights(WeightMatrix{weights, in, 1}, in, out, packed, isa);
}

// A matrix [out, in] of bf16 values with any strides, counted in elements.
struct Bf16WeightMatrix {
  const BFloat16* values;
  int64_t out_stride, in_stride;
};

// Packs a bf16 matrix. This is faster than packing floats.
void PackWeights(const Bf16WeightMatrix& weights, int64_t in, int64_t out,
                 BFloat16* packed, CpuIsa isa = ActiveCpuIsa());

// Writes `count` values of x to y, rounded to bf16. Products with BFloat16
// weights round x in the same way.
void RoundToBf16(const float* x, int64_t count, BFloat16* y,
                 CpuIsa isa = ActiveCpuIsa());

// These return the arguments for rows or outputs [begin, end) of the same
// product. In SliceOutputs(), `begin` must be a multiple of PanelWidth<W>().
template <typename W>
GemmArgs<W> SliceRows(GemmArgs<W> args, int64_t begin, int64_t end) {
  args.rows = end - begin;
  if (args.x != nullptr) args.x += begin * args.x_stride;
  if (args.x_bf16 != nullptr) args.x_bf16 += begin * args.x_stride;
  if (args.y != nullptr) args.y += begin * args.y_stride;
  if (args.y_bf16 != nullptr) args.y_bf16 += begin * args.y_stride;
  return args;
}
template <typename W>
GemmArgs<W> SliceOutputs(GemmArgs<W> args, int64_t begin, int64_t end);

// These run on the calling thread. Products with BFloat16 weights use AMX if
// HasAmxBf16() is true. If only HasAvx512Bf16() is true, they use AVX512-BF16,
// which is ten times slower. Products with SplitFloat weights use AMX if
// HasAmxBf16() is true. Without these instructions, or if `isa` is less than
// kAvx512, plain loops compute BFloat16 and SplitFloat products.
void PackedGemmCpu(const PackedGemmArgs& args, CpuIsa isa = ActiveCpuIsa());
void PackedGemmCpu(const Bf16GemmArgs& args, CpuIsa isa = ActiveCpuIsa());
void PackedGemmCpu(const SplitGemmArgs& args, CpuIsa isa = ActiveCpuIsa());

// Returns true if SplitFloat weights [out, in] are faster than float weights on
// this CPU. The CPU must have AMX, and there must be enough inputs and outputs
// for tiles.
bool SplitGemmIsFaster(int64_t in, int64_t out);

// The functions above call one of these, depending on the instruction set.
void PackedGemmScalar(const PackedGemmArgs& args);
void PackedGemmAvx2(const PackedGemmArgs& args);
void PackedGemmAvx512(const PackedGemmArgs& args);
void Bf16GemmScalar(const Bf16GemmArgs& args);
void Bf16GemmAvx512(const Bf16GemmArgs& args);
void Bf16GemmAmx(const Bf16GemmArgs& args);
void SplitGemmScalar(const SplitGemmArgs& args);
void SplitGemmAmx(const SplitGemmArgs& args);  // All x must be finite.
bool IsFiniteAvx512(const float* x, int64_t count);
void RoundToBf16Avx512(const float* x, int64_t count, BFloat16* y);
void PackWeightsScalar(const Bf16WeightMatrix& weights, int64_t in, int64_t out,
                       BFloat16* packed);
// One of the two strides must be 1.
void PackWeightsAvx512(const Bf16WeightMatrix& weights, int64_t in, int64_t out,
                       BFloat16* packed);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_PACKED_GEMM_H_
