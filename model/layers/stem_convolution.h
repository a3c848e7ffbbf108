#ifndef SFMAMBA_MODEL_LAYERS_STEM_CONVOLUTION_H_
#define SFMAMBA_MODEL_LAYERS_STEM_CONVOLUTION_H_

#include "ATen/core/Tensor.h"
#include "model/layers/convolution.h"
#include "model/layers/image_batch.h"

namespace sfmamba::layers {

// The first convolution of a network: 3x3 with stride 2, followed by a
// BatchNorm and an activation. On a device it normalises pixels itself, so that
// normalised values are never written to memory.
class StemConvolution {
 public:
  // The weight is [out, 3, 3, 3]. `image_size` is the expected side of the
  // images, a hint.
  StemConvolution(const Weights& weights, const BatchNorm& norm,
                  Activation activation, int image_size,
                  const LayerOptions& options);

  // Maps images of H x W pixels to [N, out, ceil(H / 2), ceil(W / 2)].
  at::Tensor Forward(const ImageBatch& images) const;

 private:
  at::ScalarType type_;
  Convolution convolution_;
  ops::PixelConvWeights pixel_weights_;  // Undefined if the device's kernel
                                         // cannot be used.
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_STEM_CONVOLUTION_H_
