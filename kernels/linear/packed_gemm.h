#ifndef SFMAMBA_KERNELS_LINEAR_PACKED_GEMM_H_
#define SFMAMBA_KERNELS_LINEAR_PACKED_GEMM_H_

#include <cstdint>

#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// y = x W^T + bias, or y += x W^T + bias, in fp32, with weights that have been
// packed beforehand. The packed weights are panels of PanelWidth() outputs. In
// a panel, the weights of one input are contiguous. The last panel is padded
// with zeros.
//
// Products are summed in the order of the inputs, in blocks that depend on `in`
// alone. So with one instruction set a row's outputs are bit-identical whatever
// the other rows, the requested outputs and the thread are.
struct PackedGemmArgs {
  int64_t rows;
  int64_t in, out;
  const float* x;  // [rows, in], rows x_stride apart
  int64_t x_stride;
  const float* weights;  // From PackWeights, for the same isa.
  const float* bias;     // [out] or null.
  bool add;              // y += instead of y =.
  float* y;              // [rows, out], rows y_stride apart, written
  int64_t y_stride;
};

// Returns the number of outputs in a panel.
int64_t PanelWidth(CpuIsa isa = ActiveCpuIsa());

// Returns the number of floats in the packed weights.
int64_t PackedWeightsSize(int64_t in, int64_t out, CpuIsa isa = ActiveCpuIsa());

// Packs `weights`, [out, in] and contiguous, into `packed`, which must hold
// PackedWeightsSize() floats.
void PackWeights(const float* weights, int64_t in, int64_t out, float* packed,
                 CpuIsa isa = ActiveCpuIsa());

// Return the arguments for rows or outputs [begin, end) of the same product.
// The first output must be a multiple of PanelWidth().
PackedGemmArgs SliceRows(PackedGemmArgs args, int64_t begin, int64_t end);
PackedGemmArgs SliceOutputs(PackedGemmArgs args, int64_t begin, int64_t end);

// Runs on the calling thread.
void PackedGemmCpu(const PackedGemmArgs& args, CpuIsa isa = ActiveCpuIsa());

// PackedGemmCpu chooses among these, one per instruction set.
void PackedGemmScalar(const PackedGemmArgs& args);
void PackedGemmAvx2(const PackedGemmArgs& args);
void PackedGemmAvx512(const PackedGemmArgs& args);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_PACKED_GEMM_H_
