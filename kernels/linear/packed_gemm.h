#ifndef SFMAMBA_KERNELS_LINEAR_PACKED_GEMM_H_
#define SFMAMBA_KERNELS_LINEAR_PACKED_GEMM_H_

#include <cstdint>

#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// y = x W^T + bias, or y += that, in fp32, with weights packed once: panels of
// PanelWidth() outputs, in a panel the weights of one input side by side, zeros
// for the outputs that the last panel lacks.
//
// An output sums its products in the order of the inputs, in blocks that follow
// from `in` alone. So on one instruction set a row has the same bits beside any
// other rows, whatever part of the outputs is asked for, on any thread.
struct PackedGemmArgs {
  int64_t rows;
  int64_t in, out;
  const float* x;  // [rows, in], rows x_stride apart
  int64_t x_stride;
  const float* weights;  // As PackWeights leaves them, for the same isa.
  const float* bias;     // [out] or null.
  bool add;              // y += instead of y =.
  float* y;              // [rows, out], rows y_stride apart, written
  int64_t y_stride;
};

int64_t PanelWidth(CpuIsa isa = ActiveCpuIsa());

// Values in the packed weights of `in` inputs and `out` outputs.
int64_t PackedWeightsSize(int64_t in, int64_t out, CpuIsa isa = ActiveCpuIsa());

// From [out, in], dense, to `packed`.
void PackWeights(const float* weights, int64_t in, int64_t out, float* packed,
                 CpuIsa isa = ActiveCpuIsa());

// Rows or outputs [begin, end) of what `args` describe; outputs begin with a
// panel.
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
