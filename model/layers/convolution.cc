#include "model/layers/convolution.h"

#include <utility>

#include "ATen/TensorOperators.h"
#include "ATen/ops/batch_norm.h"
#include "ATen/ops/conv2d.h"
#include "ATen/ops/gelu.h"
#include "kernels/simd/cpu_features.h"
#include "model/ops/compute_type.h"
#include "model/ops/onednn.h"
#include "model/ops/ops.h"

namespace sfmamba::layers {
namespace {

at::Tensor Activated(at::Tensor x, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      return x.relu_();
    case Activation::kRelu6:
      return x.clamp_(0, 6);
  }
  return x;
}

// Views a channels-last map [N, C, H, W] as [N * H * W, C].
at::Tensor Pixels(const at::Tensor& map) {
  return map.permute({0, 2, 3, 1}).view({-1, map.size(1)});
}

}  // namespace

kernels::CudaActivation ToCuda(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      return kernels::CudaActivation::kRelu;
    case Activation::kRelu6:
      return kernels::CudaActivation::kRelu6;
  }
  return kernels::CudaActivation::kNone;
}

Convolution::Method Convolution::ChooseMethod(const Shape& shape,
                                              const LayerOptions& options,
                                              bool on_device) {
  if (on_device) return Method::kDevice;
  const bool half = options.precision != model::Precision::kFloat32;
  const bool native =
      !half || (options.precision == model::Precision::kBFloat16 &&
                kernels::HasAmxBf16());
  if (!options.fuse || !native) return Method::kPlain;
  const bool winograd = shape.winograd && !half &&
                        kernels::ActiveCpuIsa() != kernels::CpuIsa::kScalar;
  return winograd ? Method::kWinograd : Method::kOneDnn;
}

Convolution::Convolution(const Shape& shape, const Weights& weights,
                         const std::optional<BatchNorm>& norm,
                         Activation activation, const LayerOptions& options)
    : method_(ChooseMethod(shape, options, ops::OnDevice(weights.weight))),
      fuse_(options.fuse),
      out_(shape.out),
      stride_(shape.stride),
      padding_(shape.kernel / 2),
      groups_(shape.groups),
      search_(options.conv_search),
      activation_(activation) {
  Weights used = weights;
  if (norm && options.fuse) {
    used = FoldBatchNorm(weights, *norm);
  } else {
    norm_ = norm;
  }
  const at::ScalarType type = ops::ComputeType(options.precision);
  weight_ = used.weight.to(type);
  if (used.bias.defined()) {
    bias_ = method_ == Method::kDevice ? used.bias : used.bias.to(type);
  }
  switch (method_) {
    case Method::kWinograd:
      weight_ = ops::PackWinograd(weight_);
      break;
    case Method::kOneDnn:
      weight_ = ops::PackConvolutionWeight(
          weight_, stride_, padding_, groups_,
          {1, shape.in, shape.input_size, shape.input_size});
      break;
    case Method::kDevice:
      weight_ = weight_.contiguous(at::MemoryFormat::ChannelsLast);
      break;
    case Method::kPlain:
      break;
  }
}

Weights Convolution::Take(const weights::StateDict::Scope& scope,
                          const Shape& shape, bool bias) {
  Weights weights{scope.Take("weight", {shape.out, shape.in / shape.groups,
                                        shape.kernel, shape.kernel}),
                  {}};
  if (bias) weights.bias = scope.Take("bias", {shape.out});
  return weights;
}

at::Tensor Convolution::ConvolveOnDevice(const at::Tensor& x) const {
  return ops::DeviceOpsOf(x)->Convolve(
      x, {weight_, stride_, padding_, groups_, search_});
}

at::Tensor Convolution::ForwardOnDevice(
    const at::Tensor& x, kernels::CudaActivation activation) const {
  const at::Tensor y = ConvolveOnDevice(x);
  if (bias_.defined() || activation != kernels::CudaActivation::kNone) {
    ops::DeviceOpsOf(y)->Activate(Pixels(y), bias_, activation);
  }
  return y;
}

at::Tensor Convolution::Convolve(const at::Tensor& x) const {
  if (method_ == Method::kOneDnn) {
    return ops::PackedConvolution(x, weight_, bias_, stride_, padding_,
                                  groups_);
  }
  return at::conv2d(x, weight_, bias_, stride_, padding_, /*dilation=*/1,
                    groups_);
}

at::Tensor Convolution::Forward(const at::Tensor& x) const {
  const at::Tensor in = x.to(weight_.scalar_type());
  if (method_ == Method::kDevice) {
    return ForwardOnDevice(in, ToCuda(activation_));
  }
  if (method_ == Method::kWinograd) {
    return ops::WinogradConv(in, weight_, bias_, out_,
                             activation_ == Activation::kRelu
                                 ? kernels::WinogradActivation::kRelu
                                 : kernels::WinogradActivation::kNone);
  }
  at::Tensor y = Convolve(in);
  if (norm_) {
    y = at::batch_norm(y, norm_->weight, norm_->bias, norm_->mean, norm_->var,
                       /*training=*/false, /*momentum=*/0, norm_->eps,
                       /*cudnn_enabled=*/false);
  }
  // The activation is a separate step because oneDNN's ReLU turns NaN into 0.
  return Activated(std::move(y), activation_);
}

at::Tensor Convolution::ForwardGeluTanh(const at::Tensor& x) const {
  const at::Tensor in = x.to(weight_.scalar_type());
  if (method_ == Method::kDevice) {
    return ForwardOnDevice(in, kernels::CudaActivation::kGeluTanh);
  }
  if (method_ == Method::kWinograd) {
    return ops::WinogradConv(in, weight_, bias_, out_,
                             kernels::WinogradActivation::kGeluTanh);
  }
  at::Tensor y = Forward(in);
  if (!fuse_) return at::gelu(y, "tanh");
  ops::GeluTanh(y);
  return y;
}

void Convolution::AddTo(at::Tensor& residual, const at::Tensor& x) const {
  const at::Tensor in = x.to(weight_.scalar_type());
  switch (method_) {
    case Method::kOneDnn:
      ops::PackedConvolutionAdd(residual, in, weight_, bias_, padding_);
      break;
    case Method::kWinograd:
      ops::AddWinogradConv(in, weight_, bias_, residual);
      break;
    case Method::kDevice:
      ops::DeviceOpsOf(in)->AddBiased(Pixels(ConvolveOnDevice(in)), bias_,
                                      Pixels(residual));
      break;
    case Method::kPlain:
      residual = residual + Forward(in);
      break;
  }
}

}  // namespace sfmamba::layers
