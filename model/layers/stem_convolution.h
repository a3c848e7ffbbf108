#ifndef SFMAMBA_MODEL_LAYERS_STEM_CONVOLUTION_H_
#define SFMAMBA_MODEL_LAYERS_STEM_CONVOLUTION_H_

#include "ATen/core/Tensor.h"
#include "model/layers/convolution.h"
#include "model/layers/image_batch.h"

namespace sfmamba::layers {

// The first convolution of a network: 3x3, stride 2, a BatchNorm and an
// activation. A device that has pixels normalises them on the way and so reads
// three bytes a pixel instead of writing and reading values.
class StemConvolution {
 public:
  // `weights` [out, 3, 3, 3]; `image_size` is the side of the images expected,
  // a hint.
  StemConvolution(const Weights& weights, const BatchNorm& norm,
                  Activation activation, int image_size,
                  const LayerOptions& options);

  // Images of H x W pixels to [N, out, ceil(H / 2), ceil(W / 2)].
  at::Tensor Forward(const ImageBatch& images) const;

 private:
  at::ScalarType type_;
  Convolution convolution_;
  ops::PixelConvWeights pixel_weights_;  // Undefined unless a device can.
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_STEM_CONVOLUTION_H_
