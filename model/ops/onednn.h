#ifndef SFMAMBA_MODEL_OPS_ONEDNN_H_
#define SFMAMBA_MODEL_OPS_ONEDNN_H_

#include <string>

#include "ATen/core/Tensor.h"

namespace sfmamba::ops {

// oneDNN through libtorch's dispatcher: the only door, for libtorch exports
// none of its symbols. Tensors are fp32 or bf16; packed weights are opaque, of
// use here only.

// weight [out, in]; `rows` is the number expected at run time, a hint.
at::Tensor PackLinearWeight(const at::Tensor& weight, int64_t rows);

// x [rows, in] times weight^T plus bias [out] (may be undefined), then `attr`:
// "none", or "gelu" (the erf form).
at::Tensor PackedLinear(const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& bias, const std::string& attr);

// weight [out, in / groups, k, k]; `input_shape` [N, in, H, W] is what is
// expected at run time, a hint.
at::Tensor PackConvolutionWeight(const at::Tensor& weight, int stride,
                                 int padding, int groups,
                                 at::IntArrayRef input_shape);

// Channels-last in and out.
at::Tensor PackedConvolution(const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& bias, int stride, int padding,
                             int groups);

// The same of stride 1 and one group, added to `residual` in place.
void PackedConvolutionAdd(at::Tensor& residual, const at::Tensor& x,
                          const at::Tensor& weight, const at::Tensor& bias,
                          int padding);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_ONEDNN_H_
