#include "ATen/ops/addmm.h"
#include "ATen/ops/conv2d.h"
#include "ATen/ops/mm.h"
#include "ATen/ops/scaled_dot_product_attention.h"
#include "model/ops/cuda/cuda_ops.h"

namespace sfmamba::ops {

at::Tensor CudaOps::Linear(const at::Tensor& x, const at::Tensor& W,
                           const at::Tensor& bias) const {
  return bias.defined() ? at::addmm(bias, x, W.t()) : at::mm(x, W.t());
}

at::Tensor CudaOps::LinearGeluTanh(const at::Tensor& x, const at::Tensor& W,
                                   const at::Tensor& bias) const {
  const at::Tensor y = Linear(x, W, bias);
  Activate(y, {}, kernels::CudaActivation::kGeluTanh);
  return y;
}

void CudaOps::AddLinear(const at::Tensor& x, const at::Tensor& W,
                        const at::Tensor& y) const {
  y.addmm_(x, W.t());
}

at::Tensor CudaOps::Convolve(const at::Tensor& x,
                             const ConvWeights& weights) const {
  return at::conv2d(x, weights.weight, /*bias=*/{}, weights.stride,
                    weights.padding, /*dilation=*/1, weights.groups)
      .contiguous(at::MemoryFormat::ChannelsLast);  // Usually no copy.
}

at::Tensor CudaOps::Attention(const at::Tensor& q, const at::Tensor& k,
                              const at::Tensor& v) const {
  return at::scaled_dot_product_attention(q, k, v);
}

}  // namespace sfmamba::ops
