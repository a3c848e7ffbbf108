#include <utility>

#include "ATen/TensorOperators.h"
#include "ATen/ops/batch_norm.h"
#include "ATen/ops/conv2d.h"
#include "ATen/ops/gelu.h"
#include "model/ops/reference/reference_implementation.h"

namespace sfmamba::ops {
namespace {

class ReferenceConvolution : public ConvolutionOp {
 public:
  explicit ReferenceConvolution(const ConvolutionParameters& parameters)
      : parameters_(parameters) {}

  at::Tensor Forward(const at::Tensor& x) const override {
    const auto& [weight, bias] = parameters_.weights;
    at::Tensor y = at::conv2d(x, weight, bias, parameters_.stride,
                              parameters_.kernel() / 2, /*dilation=*/1,
                              parameters_.groups);
    if (parameters_.norm.has_value()) {
      const BatchNorm& norm = *parameters_.norm;
      y = at::batch_norm(y, norm.weight, norm.bias, norm.mean, norm.var,
                         /*training=*/false, /*momentum=*/0, norm.eps,
                         /*cudnn_enabled=*/false);
    }
    return Activated(std::move(y));
  }

  void AddTo(at::Tensor& residual, const at::Tensor& x) const override {
    residual = residual + Forward(x);
  }

 private:
  at::Tensor Activated(at::Tensor y) const {
    switch (parameters_.activation) {
      case Activation::kNone:
        break;
      case Activation::kRelu:
        return y.relu_();
      case Activation::kRelu6:
        return y.clamp_(0, 6);
      case Activation::kGeluTanh:
        return at::gelu(y, "tanh");
    }
    return y;
  }

  const ConvolutionParameters parameters_;
};

class ReferenceStem : public StemOp {
 public:
  explicit ReferenceStem(const ConvolutionParameters& parameters)
      : convolution_(parameters) {}

  at::Tensor Forward(const ImageBatch& images) const override {
    return convolution_.Forward(images.values().contiguous());
  }

 private:
  const ReferenceConvolution convolution_;
};

}  // namespace

std::unique_ptr<ConvolutionOp> ReferenceImplementation::MakeConvolution(
    const ConvolutionParameters& parameters) const {
  return std::make_unique<ReferenceConvolution>(parameters);
}

std::unique_ptr<StemOp> ReferenceImplementation::MakeStem(
    const ConvolutionParameters& parameters) const {
  return std::make_unique<ReferenceStem>(parameters);
}

at::Tensor ReferenceImplementation::Values(const ImageBatch& images) const {
  return images.values();
}

}  // namespace sfmamba::ops
