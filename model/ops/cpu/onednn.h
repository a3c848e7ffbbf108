#ifndef SFMAMBA_MODEL_OPS_CPU_ONEDNN_H_
#define SFMAMBA_MODEL_OPS_CPU_ONEDNN_H_

#include "ATen/core/Tensor.h"

namespace sfmamba::ops {

// Convolutions of oneDNN. They are called through libtorch's dispatcher because
// libtorch exports none of oneDNN's symbols. Tensors are fp32 or bf16. Packed
// weights are opaque and can only be passed to these functions.

// Packs weight [out, in / groups, k, k]. `input_shape` [N, in, H, W] is the
// expected shape of the input, a hint.
at::Tensor PackConvolutionWeight(const at::Tensor& weight, int stride,
                                 int padding, int groups,
                                 at::IntArrayRef input_shape);

// Returns the convolution of x. Both are channels-last in memory.
at::Tensor PackedConvolution(const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& bias, int stride, int padding,
                             int groups);

// Adds a convolution with stride 1 and one group to `residual` in place.
void PackedConvolutionAdd(at::Tensor& residual, const at::Tensor& x,
                          const at::Tensor& weight, const at::Tensor& bias,
                          int padding);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_CPU_ONEDNN_H_
