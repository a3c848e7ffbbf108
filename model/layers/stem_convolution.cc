#include "model/layers/stem_convolution.h"

#include "ATen/ops/empty.h"
#include "model/ops/compute_type.h"
#include "model/ops/ops.h"

namespace sfmamba::layers {
namespace {

constexpr int kColours = 3, kKernel = 3;
// The device's kernel needs a multiple of this many channels.
constexpr int64_t kChannelStep = 8;

Convolution::Shape ShapeOf(const Weights& weights, int image_size) {
  return {kColours, static_cast<int>(weights.weight.size(0)), /*stride=*/2,
          image_size};
}

// Converts weights [out, colour, row, column], with the BatchNorm folded in, to
// [row, column, colour, out] in fp32.
ops::PixelConvWeights ForPixels(const Weights& weights, const BatchNorm& norm,
                                Activation activation) {
  const Weights folded = FoldBatchNorm(weights, norm);
  return {folded.weight.permute({2, 3, 1, 0})
              .contiguous()
              .view({kKernel * kKernel * kColours, -1}),
          folded.bias, ToCuda(activation)};
}

}  // namespace

StemConvolution::StemConvolution(const Weights& weights, const BatchNorm& norm,
                                 Activation activation, int image_size,
                                 const LayerOptions& options)
    : type_(ops::ComputeType(options.precision)),
      convolution_(ShapeOf(weights, image_size), weights, norm, activation,
                   options) {
  if (ops::OnDevice(weights.weight) &&
      weights.weight.size(0) % kChannelStep == 0) {
    pixel_weights_ = ForPixels(weights, norm, activation);
  }
}

at::Tensor StemConvolution::Forward(const ImageBatch& images) const {
  const ops::PixelBatch* const pixels = images.pixels();
  if (pixels == nullptr || !pixel_weights_.weight.defined()) {
    return convolution_.Forward(images.Values());
  }
  const at::Tensor y =
      at::empty({static_cast<int64_t>(pixels->images.size()),
                 pixel_weights_.weight.size(1), (pixels->height + 1) / 2,
                 (pixels->width + 1) / 2},
                pixel_weights_.weight.options().dtype(type_).memory_format(
                    at::MemoryFormat::ChannelsLast));
  ops::DeviceOpsOf(y)->ConvolvePixels(*pixels, pixel_weights_, y);
  return y;
}

}  // namespace sfmamba::layers
