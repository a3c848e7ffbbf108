#include <utility>

#include "ATen/TensorOperators.h"
#include "kernels/simd/cpu_features.h"
#include "model/ops/cpu/cpu_implementation.h"
#include "model/ops/cpu/onednn.h"
#include "model/ops/cpu/ops.h"

namespace sfmamba::ops {
namespace {

at::Tensor Activated(at::Tensor x, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      return x.relu_();
    case Activation::kRelu6:
      return x.clamp_(0, 6);
    case Activation::kGeluTanh:
      GeluTanh(x);
      break;
  }
  return x;
}

// Returns whether Winograd's method is used. It needs only a third of the
// multiplications, but rounds a little more. It requires a 3x3 kernel with
// stride 1 and one group, an activation other than ReLU6, and vector
// instructions.
bool IsForWinograd(const ConvolutionParameters& parameters) {
  return parameters.kernel() == 3 && parameters.stride == 1 &&
         parameters.groups == 1 &&
         parameters.activation != Activation::kRelu6 &&
         kernels::ActiveCpuIsa() != kernels::CpuIsa::kScalar;
}

kernels::WinogradActivation ToWinograd(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return kernels::WinogradActivation::kRelu;
    case Activation::kGeluTanh:
      return kernels::WinogradActivation::kGeluTanh;
    case Activation::kNone:
    case Activation::kRelu6:
      break;
  }
  return kernels::WinogradActivation::kNone;
}

// Convolves by Winograd's method, in fp32 by our kernel.
class WinogradConvolution : public ConvolutionOp {
 public:
  WinogradConvolution(const ConvolutionParameters& parameters,
                      const Weights& weights)
      : activation_(ToWinograd(parameters.activation)),
        convolution_(PackWinograd(
            weights.weight, weights.bias,
            kernels::WinogradSide(parameters.maps, parameters.input_size,
                                  parameters.input_size, weights.weight.size(1),
                                  weights.weight.size(0)))) {}

  at::Tensor Forward(const at::Tensor& x) const override {
    return WinogradConv(x.to(at::kFloat), convolution_, activation_);
  }

  void AddTo(at::Tensor& residual, const at::Tensor& x) const override {
    AddWinogradConv(x.to(at::kFloat), convolution_, residual);
  }

 private:
  kernels::WinogradActivation activation_;
  WinogradWeights convolution_;
};

// Sets the range that ReLU and ReLU6 clamp to. Other activations have no range.
template <typename Packed>
void SetLimits(Activation activation, Packed* convolution) {
  const bool relu6 = activation == Activation::kRelu6;
  if (relu6 || activation == Activation::kRelu) convolution->low = 0;
  if (relu6) convolution->high = 6;
}

// Convolves each channel separately, in fp32 by our kernel.
class DepthwiseConvolution : public ConvolutionOp {
 public:
  DepthwiseConvolution(const ConvolutionParameters& parameters,
                       const Weights& weights)
      : activation_(parameters.activation),
        convolution_(
            PackDepthwise(weights.weight, weights.bias, parameters.stride)) {
    SetLimits(activation_, &convolution_);
  }

  at::Tensor Forward(const at::Tensor& x) const override {
    at::Tensor y = DepthwiseConv(x.to(at::kFloat), convolution_);
    if (activation_ == Activation::kGeluTanh) GeluTanh(y);
    return y;
  }

  void AddTo(at::Tensor& residual, const at::Tensor& x) const override {
    residual = residual + Forward(x);
  }

 private:
  Activation activation_;
  DepthwiseWeights convolution_;
};

// Convolves with one group by our kernel, which multiplies in fp32 or bf16.
// Inputs and results are fp32. If the kernel multiplies in bf16, they may also
// be bf16.
class GemmConvolution : public ConvolutionOp {
 public:
  GemmConvolution(const ConvolutionParameters& parameters,
                  const Weights& weights, at::ScalarType type)
      : convolution_(PackGemmConv(weights.weight, weights.bias,
                                  parameters.stride, type)) {
    SetLimits(parameters.activation, &convolution_);
    convolution_.gelu = parameters.activation == Activation::kGeluTanh;
    if (parameters.feeds_products) convolution_.result = type;
  }

  at::Tensor Forward(const at::Tensor& x) const override {
    return GemmConv(Readable(x), convolution_);
  }

  void AddTo(at::Tensor& residual, const at::Tensor& x) const override {
    AddGemmConv(Readable(x), convolution_, residual);
  }

 private:
  // Returns x in a type that the convolution reads.
  at::Tensor Readable(const at::Tensor& x) const {
    return x.scalar_type() == convolution_.weights.values.scalar_type()
               ? x
               : x.to(at::kFloat);
  }

  GemmConvWeights convolution_;
};

kernels::Int8Activation ToInt8(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      return kernels::Int8Activation::kRelu;
    case Activation::kRelu6:
      return kernels::Int8Activation::kRelu6;
    case Activation::kGeluTanh:
      return kernels::Int8Activation::kGeluTanh;
  }
  return kernels::Int8Activation::kNone;
}

// Returns whether the convolution is computed in int8 if the model is int8.
// int8 is faster only if each value of the result is the sum of many products.
// So the convolution must be larger than 1x1 and have one group. The number of
// input channels must be a multiple of 4, because our int8 code multiplies four
// channels at once. Outputs of the network are not computed in int8.
bool IsForInt8(const ConvolutionParameters& parameters) {
  return parameters.kernel() > 1 && parameters.groups == 1 &&
         parameters.in() % 4 == 0 && !parameters.is_output;
}

// Convolves with one group by our kernel, which multiplies in int8. Inputs and
// results are fp32.
class Int8Convolution : public ConvolutionOp {
 public:
  Int8Convolution(const ConvolutionParameters& parameters,
                  const Weights& weights)
      : convolution_(
            PackInt8Conv(weights.weight, weights.bias, parameters.stride)) {
    convolution_.activation = ToInt8(parameters.activation);
  }

  at::Tensor Forward(const at::Tensor& x) const override {
    return Int8Conv(x, convolution_);
  }

  void AddTo(at::Tensor& residual, const at::Tensor& x) const override {
    AddInt8Conv(x, convolution_, residual);
  }

 private:
  Int8ConvWeights convolution_;
};

class OneDnnConvolution : public ConvolutionOp {
 public:
  OneDnnConvolution(const ConvolutionParameters& parameters,
                    const Weights& weights, at::ScalarType type)
      : stride_(parameters.stride),
        padding_(parameters.kernel() / 2),
        groups_(parameters.groups),
        activation_(parameters.activation),
        type_(type),
        weight_(PackConvolutionWeight(
            weights.weight.to(type), stride_, padding_, groups_,
            {1, parameters.in(), parameters.input_size,
             parameters.input_size})) {
    if (weights.bias.defined()) bias_ = weights.bias.to(type);
  }

  at::Tensor Forward(const at::Tensor& x) const override {
    // The activation is a separate step because oneDNN's ReLU turns NaN into 0.
    return Activated(PackedConvolution(x.to(type_), weight_, bias_, stride_,
                                       padding_, groups_),
                     activation_);
  }

  void AddTo(at::Tensor& residual, const at::Tensor& x) const override {
    PackedConvolutionAdd(residual, x.to(type_), weight_, bias_, padding_);
  }

 private:
  int stride_, padding_, groups_;
  Activation activation_;
  at::ScalarType type_;
  at::Tensor weight_;  // Packed.
  at::Tensor bias_;    // [out] or undefined.
};

class CpuStem : public StemOp {
 public:
  explicit CpuStem(std::unique_ptr<const ConvolutionOp> convolution)
      : convolution_(std::move(convolution)) {}

  at::Tensor Forward(const ImageBatch& images) const override {
    return convolution_->Forward(
        images.values().contiguous(at::MemoryFormat::ChannelsLast));
  }

 private:
  const std::unique_ptr<const ConvolutionOp> convolution_;
};

}  // namespace

std::unique_ptr<ConvolutionOp> CpuImplementation::MakeConvolution(
    const ConvolutionParameters& parameters) const {
  const Weights weights =
      parameters.norm.has_value()
          ? FoldBatchNorm(parameters.weights, *parameters.norm)
          : parameters.weights;
  if (int8_convolutions_ && IsForInt8(parameters)) {
    return std::make_unique<Int8Convolution>(parameters, weights);
  }
  const at::ScalarType type = ProductsOf(parameters.is_output);
  // Winograd's method needs fewer multiplications, but computes in fp32. With
  // AMX, multiplying in bf16 without this method is faster.
  const bool tiles = type == at::kBFloat16 && kernels::HasAmxBf16();
  if (IsForWinograd(parameters) && !tiles) {
    return std::make_unique<WinogradConvolution>(parameters, weights);
  }
  if (kernels::ActiveCpuIsa() != kernels::CpuIsa::kScalar) {
    if (parameters.groups == 1) {
      return std::make_unique<GemmConvolution>(parameters, weights, type);
    }
    if (parameters.groups == weights.weight.size(0) &&
        weights.weight.size(1) == 1) {
      return std::make_unique<DepthwiseConvolution>(parameters, weights);
    }
  }
  // oneDNN computes the remaining convolutions. They have several groups, but
  // are not depthwise. On CPUs without the instructions for our kernels, oneDNN
  // computes all convolutions in fp32.
  return std::make_unique<OneDnnConvolution>(parameters, weights, at::kFloat);
}

std::unique_ptr<StemOp> CpuImplementation::MakeStem(
    const ConvolutionParameters& parameters) const {
  return std::make_unique<CpuStem>(MakeConvolution(parameters));
}

at::Tensor CpuImplementation::Values(const ImageBatch& images) const {
  return images.values();
}

}  // namespace sfmamba::ops
