#ifndef SFMAMBA_MODEL_LAYERS_STEM_CONVOLUTION_H_
#define SFMAMBA_MODEL_LAYERS_STEM_CONVOLUTION_H_

#include <memory>
#include <optional>

#include "ATen/core/Tensor.h"
#include "model/ops/implementation.h"

namespace sfmamba::layers {

// The first convolution of a network. It is 3x3 with stride 2, followed by an
// optional BatchNorm and an activation. Immutable, so thread-safe.
class StemConvolution {
 public:
  // The weight is [out, 3, 3, 3]. `image_size` is the expected side of the
  // images, which affects the choice of algorithms. See
  // ops::ConvolutionParameters for `feeds_products`.
  StemConvolution(const ops::Weights& weights,
                  const std::optional<ops::BatchNorm>& norm,
                  ops::Activation activation, int image_size,
                  bool feeds_products,
                  const ops::Implementation& implementation)
      : op_(implementation.MakeStem({weights, norm, activation, /*stride=*/2,
                                     /*groups=*/1, image_size,
                                     /*is_output=*/false, /*maps=*/1,
                                     feeds_products})) {}

  // Maps images of H x W pixels to [N, out, ceil(H / 2), ceil(W / 2)].
  at::Tensor Forward(const ops::ImageBatch& images) const {
    return op_->Forward(images);
  }

 private:
  std::unique_ptr<const ops::StemOp> op_;
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_STEM_CONVOLUTION_H_
