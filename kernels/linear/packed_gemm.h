#ifndef SFMAMBA_KERNELS_LINEAR_PACKED_GEMM_H_
#define SFMAMBA_KERNELS_LINEAR_PACKED_GEMM_H_

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// y = x W^T + bias, or y += x W^T + bias, with weights of type W, float,
// BFloat16 or SplitFloat, that have been packed beforehand. Sums, bias and y
// are fp32. With BFloat16 weights the values of x are rounded to bf16, to
// nearest, before they are multiplied; x may also be bf16 already, and y may be
// rounded to bf16.
//
// Products are summed in the order of the inputs, in blocks that depend on `in`
// alone. So with one instruction set a row's outputs are bit-identical whatever
// the other rows, the requested outputs and the thread are.
template <typename W>
struct GemmArgs {
  int64_t rows;
  int64_t in, out;
  const float* x;  // [rows, in], rows x_stride apart
  int64_t x_stride;
  const W* weights;   // From PackWeights, for the same isa.
  const float* bias;  // [out] or null.
  bool add;           // y += instead of y =.
  float* y;           // [rows, out], rows y_stride apart, written
  int64_t y_stride;

  // Take the place of x and y if they are not null. With BFloat16 weights only,
  // and y_bf16 without `add`.
  const BFloat16* x_bf16 = nullptr;
  BFloat16* y_bf16 = nullptr;
  // y = gelu(x W^T + bias) in the erf form, without `add`; y_bf16 is rounded
  // once.
  bool gelu = false;
};

// A float of weights that products split into three bf16 values, from large to
// small, each the first 8 bits of what is left. None is left of the third.
struct SplitFloat {
  float value = 0;
};

// A product in fp32 of the parts of finite weights and of each x. Of the nine
// products of the parts of a weight and of an x the six largest are added up in
// fp32. A product so misses less than 2^-20 of itself, about 2^-24 on average.
// By tiles (AMX) sums round less often than one by one, and a result is about
// as near to the exact one as that of floats, or nearer. Also, parts and
// products of parts less than 2^-126 then count as 0: an x or a weight misses
// less than 2^-126, and a product less than 2^-123 more.
//
// Rows of x with an infinity or a NaN are multiplied as floats, since the parts
// of an infinity would make NaN of what it makes infinite.
// Source: Henry, Tang and Heinecke (arXiv 1904.06376), 3, with parts that are
// cut off instead of rounded.
using SplitGemmArgs = GemmArgs<SplitFloat>;

using PackedGemmArgs = GemmArgs<float>;
using Bf16GemmArgs = GemmArgs<BFloat16>;

// Packed weights are panels of this number of outputs. In a panel of floats,
// the weights of one input are contiguous; in a panel of BFloat16, those of two
// inputs, the two of an output side by side, and an odd last input is followed
// by zeros. The last panel is padded with zeros. A panel of SplitFloats is as
// one of floats, with zeros up to a multiple of 32 inputs.
template <typename W = float>
int64_t PanelWidth(CpuIsa isa = ActiveCpuIsa());

// Returns the number of values in the packed weights.
template <typename W = float>
int64_t PackedWeightsSize(int64_t in, int64_t out, CpuIsa isa = ActiveCpuIsa());

// A matrix [out, in] anywhere in memory. Strides are in elements.
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

// A matrix [out, in] of bf16 values, as above.
struct Bf16WeightMatrix {
  const BFloat16* values;
  int64_t out_stride, in_stride;
};

// Packs the matrix, which takes less time than from floats.
void PackWeights(const Bf16WeightMatrix& weights, int64_t in, int64_t out,
                 BFloat16* packed, CpuIsa isa = ActiveCpuIsa());

// Writes y = x, rounded to bf16 as products with BFloat16 weights round it.
void RoundToBf16(const float* x, int64_t count, BFloat16* y,
                 CpuIsa isa = ActiveCpuIsa());

// Return the arguments for rows or outputs [begin, end) of the same product.
// The first output must be a multiple of PanelWidth<W>().
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

// Run on the calling thread. Products in bf16 need HasAmxBf16() or, which is a
// tenth as fast, HasAvx512Bf16(), those of SplitFloats HasAmxBf16(); without
// them or with `isa` less than kAvx512 they are computed one by one.
void PackedGemmCpu(const PackedGemmArgs& args, CpuIsa isa = ActiveCpuIsa());
void PackedGemmCpu(const Bf16GemmArgs& args, CpuIsa isa = ActiveCpuIsa());
void PackedGemmCpu(const SplitGemmArgs& args, CpuIsa isa = ActiveCpuIsa());

// Returns whether weights [out, in] had better be SplitFloats than floats on
// this processor: they need AMX, and enough inputs and outputs for tiles.
bool SplitGemmIsFaster(int64_t in, int64_t out);

// PackedGemmCpu chooses among these, one per instruction set.
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
// One of the strides must be 1.
void PackWeightsAvx512(const Bf16WeightMatrix& weights, int64_t in, int64_t out,
                       BFloat16* packed);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_PACKED_GEMM_H_
