#include <utility>

#include "ATen/ops/empty.h"
#include "model/ops/cuda/cuda_implementation.h"

namespace sfmamba::ops {
namespace {

// The kernel for stems (first convolutions) supports only 3 colours, 3x3 taps
// and stride 2.
constexpr int kColours = 3, kKernel = 3, kStride = 2;
// It also needs a number of output channels that is a multiple of this.
constexpr int64_t kChannelStep = 8;

kernels::CudaActivation ToCuda(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      return kernels::CudaActivation::kRelu;
    case Activation::kRelu6:
      return kernels::CudaActivation::kRelu6;
    case Activation::kGeluTanh:
      return kernels::CudaActivation::kGeluTanh;
  }
  return kernels::CudaActivation::kNone;
}

// Views a channels-last map [N, C, H, W] as [N * H * W, C].
at::Tensor Pixels(const at::Tensor& map) {
  TORCH_CHECK(map.is_contiguous(at::MemoryFormat::ChannelsLast),
              "expected a channels-last map, got sizes ", map.sizes(),
              ", strides ", map.strides());
  return map.permute({0, 2, 3, 1}).view({-1, map.size(1)});
}

Weights Folded(const ConvolutionParameters& parameters) {
  return parameters.norm.has_value()
             ? FoldBatchNorm(parameters.weights, *parameters.norm)
             : parameters.weights;
}

// Convolves with cuDNN. Forward() then adds the bias and applies the activation
// in one more pass over memory. AddTo() then adds the bias and the residual in
// one more pass.
class CudaConvolution : public ConvolutionOp {
 public:
  CudaConvolution(const DeviceOps& device,
                  const ConvolutionParameters& parameters, ConvSearch search,
                  at::ScalarType type)
      : device_(device), activation_(ToCuda(parameters.activation)) {
    const Weights weights = Folded(parameters);
    weights_ = {
        weights.weight.to(type).contiguous(at::MemoryFormat::ChannelsLast),
        parameters.stride, parameters.kernel() / 2, parameters.groups, search};
    bias_ = weights.bias;
  }

  at::Tensor Forward(const at::Tensor& x) const override {
    const at::Tensor y = Convolve(x);
    if (bias_.defined() || activation_ != kernels::CudaActivation::kNone) {
      device_.Activate(Pixels(y), bias_, activation_);
    }
    return y;
  }

  void AddTo(at::Tensor& residual, const at::Tensor& x) const override {
    device_.AddBiased(Pixels(Convolve(x)), bias_, Pixels(residual));
  }

 private:
  at::Tensor Convolve(const at::Tensor& x) const {
    return device_.Convolve(x.to(weights_.weight.scalar_type()), weights_);
  }

  const DeviceOps& device_;
  kernels::CudaActivation activation_;
  ConvWeights weights_;
  at::Tensor bias_;  // fp32 [out] or undefined.
};

// Uses our kernel. It needs no plan for each batch size, unlike cuDNN.
class CudaDepthwiseConvolution : public ConvolutionOp {
 public:
  CudaDepthwiseConvolution(const DeviceOps& device,
                           const ConvolutionParameters& parameters,
                           at::ScalarType type)
      : device_(device), type_(type) {
    const Weights weights = Folded(parameters);
    weights_ = {weights.weight.squeeze(1).permute({1, 2, 0}).contiguous(),
                weights.bias, parameters.stride, ToCuda(parameters.activation)};
  }

  at::Tensor Forward(const at::Tensor& x) const override {
    const int64_t stride = weights_.stride;
    const at::Tensor own =
        x.to(type_).contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor y =
        at::empty({x.size(0), x.size(1), (x.size(2) + stride - 1) / stride,
                   (x.size(3) + stride - 1) / stride},
                  own.options().memory_format(at::MemoryFormat::ChannelsLast));
    device_.ConvolveDepthwise(own, weights_, y);
    return y;
  }

  void AddTo(at::Tensor& residual, const at::Tensor& x) const override {
    device_.AddBiased(Pixels(Forward(x)), /*bias=*/{}, Pixels(residual));
  }

 private:
  const DeviceOps& device_;
  at::ScalarType type_;
  DepthwiseConvWeights weights_;
};

// Returns whether our kernel can compute the convolution. It can compute every
// depthwise convolution of our networks.
bool IsForDepthwise(const ConvolutionParameters& parameters) {
  const int kernel = parameters.kernel();
  return parameters.groups > 1 && parameters.groups == parameters.in() &&
         parameters.groups == parameters.out() && kernel >= 3 && kernel <= 7 &&
         parameters.stride <= 2 &&
         parameters.activation != Activation::kGeluTanh;
}

// Converts weights [out, colour, row, column] to [row, column, colour, out] in
// fp32.
PixelConvWeights ForPixels(const ConvolutionParameters& parameters) {
  const Weights folded = Folded(parameters);
  return {folded.weight.permute({2, 3, 1, 0})
              .contiguous()
              .view({kKernel * kKernel * kColours, -1}),
          folded.bias, ToCuda(parameters.activation)};
}

bool IsForPixels(const ConvolutionParameters& parameters) {
  return parameters.in() == kColours && parameters.kernel() == kKernel &&
         parameters.stride == kStride && parameters.groups == 1 &&
         parameters.out() % kChannelStep == 0;
}

// Computes a network's first convolution. If the images are given as pixels and
// our kernel supports the convolution, the kernel reads the pixels directly.
// Normalised values are then never written to memory. Otherwise, another
// convolution operator reads the images' normalised values.
class CudaStem : public StemOp {
 public:
  CudaStem(const CudaImplementation& implementation, const DeviceOps& device,
           const ConvolutionParameters& parameters, at::ScalarType type)
      : implementation_(implementation),
        device_(device),
        type_(type),
        convolution_(implementation.MakeConvolution(parameters)) {
    if (IsForPixels(parameters)) pixel_weights_ = ForPixels(parameters);
  }

  at::Tensor Forward(const ImageBatch& images) const override {
    const PixelBatch* const pixels = images.pixels();
    if (pixels == nullptr || !pixel_weights_.weight.defined()) {
      return convolution_->Forward(implementation_.Values(images));
    }
    const at::Tensor y = at::empty(
        {static_cast<int64_t>(pixels->images.size()),
         pixel_weights_.weight.size(1), (pixels->height + 1) / kStride,
         (pixels->width + 1) / kStride},
        pixel_weights_.weight.options().dtype(type_).memory_format(
            at::MemoryFormat::ChannelsLast));
    device_.ConvolvePixels(*pixels, pixel_weights_, y);
    return y;
  }

 private:
  const CudaImplementation& implementation_;
  const DeviceOps& device_;
  at::ScalarType type_;
  std::unique_ptr<const ConvolutionOp> convolution_;
  PixelConvWeights pixel_weights_;  // Undefined if the kernel cannot be used.
};

}  // namespace

std::unique_ptr<ConvolutionOp> CudaImplementation::MakeConvolution(
    const ConvolutionParameters& parameters) const {
  const at::ScalarType type = TypeOf(parameters.is_output);
  if (IsForDepthwise(parameters)) {
    return std::make_unique<CudaDepthwiseConvolution>(device_, parameters,
                                                      type);
  }
  return std::make_unique<CudaConvolution>(device_, parameters,
                                           options_.conv_search, type);
}

std::unique_ptr<StemOp> CudaImplementation::MakeStem(
    const ConvolutionParameters& parameters) const {
  return std::make_unique<CudaStem>(*this, device_, parameters,
                                    TypeOf(parameters.is_output));
}

at::Tensor CudaImplementation::Values(const ImageBatch& images) const {
  const PixelBatch* const pixels = images.pixels();
  if (pixels == nullptr) return images.values();
  const at::Tensor x =
      at::empty({static_cast<int64_t>(pixels->images.size()), kColours,
                 pixels->height, pixels->width},
                at::TensorOptions(images.device())
                    .dtype(images.type())
                    .memory_format(at::MemoryFormat::ChannelsLast));
  device_.NormalizeImages(*pixels, x);
  return x;
}

}  // namespace sfmamba::ops
