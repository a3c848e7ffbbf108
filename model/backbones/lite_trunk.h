#ifndef SFMAMBA_MODEL_BACKBONES_LITE_TRUNK_H_
#define SFMAMBA_MODEL_BACKBONES_LITE_TRUNK_H_

#include <optional>
#include <vector>

#include "ATen/core/Tensor.h"
#include "model/layers/convolution.h"
#include "model/layers/stem_convolution.h"
#include "model/ops/image_batch.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// The layers of EfficientNet-Lite0 down to stride 16, or to the first block of
// stride 32. They are a convolution and eleven or twelve inverted residual
// blocks. A BatchNorm follows each convolution. The "lite" form has ReLU6 as
// its activation and no squeeze-and-excitation. Padding is symmetric.
// Immutable, so thread-safe. Source: EfficientNet (arXiv 1905.11946), section
// 4.
class LiteTrunk {
 public:
  // `stride` is the stride of the last map, 16 or 32. `image_size` is the
  // expected side of the images, which affects the choice of algorithms.
  LiteTrunk(const weights::StateDict::Scope& scope, int stride, int image_size,
            const ops::Implementation& implementation);

  // Maps images of H x W pixels to maps [N, C, ceil(H / stride), ceil(W /
  // stride)]. There is a map for each of the strides 4, 8, 16 and 32, up to the
  // constructor's `stride`. These maps have 24, 40, 112 and 192 channels.
  std::vector<at::Tensor> Forward(const ops::ImageBatch& images) const;

 private:
  // An inverted residual block. It consists of an optional 1x1 expansion, a
  // depthwise convolution and a 1x1 projection.
  struct Block {
    std::optional<layers::Convolution> expand;
    layers::Convolution depthwise, project;
    bool residual;  // If true, the result is added to x in place.

    at::Tensor Forward(at::Tensor x) const;
  };

  layers::StemConvolution stem_;
  std::vector<Block> blocks_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_LITE_TRUNK_H_
