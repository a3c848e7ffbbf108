#ifndef SFMAMBA_MODEL_BACKBONES_LITE_TRUNK_H_
#define SFMAMBA_MODEL_BACKBONES_LITE_TRUNK_H_

#include <optional>
#include <vector>

#include "ATen/core/Tensor.h"
#include "model/layers/convolution.h"
#include "model/layers/image_batch.h"
#include "model/layers/layer_options.h"
#include "model/layers/stem_convolution.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// The layers of EfficientNet-Lite0 down to stride 16: a convolution and eleven
// inverted residuals, each behind a BatchNorm. Source: EfficientNet (arXiv
// 1905.11946), section 4, in its "lite" form: ReLU6, no squeeze-excitation;
// padding is symmetric. Immutable, so thread-safe.
class LiteTrunk {
 public:
  // `image_size` is the side of the images expected, a hint.
  LiteTrunk(const weights::StateDict::Scope& scope, int image_size,
            const layers::LayerOptions& options);

  // Images of H x W pixels to three maps [N, C, ceil(H / stride),
  // ceil(W / stride)] of 24, 40 and 112 channels, at strides 4, 8 and 16.
  std::vector<at::Tensor> Forward(const layers::ImageBatch& images) const;

 private:
  // Wider, convolved channel by channel, narrower.
  struct Block {
    std::optional<layers::Convolution> expand;
    layers::Convolution depthwise, project;
    bool residual;  // The answer is added to x, whose memory it takes.

    at::Tensor Forward(at::Tensor x) const;
  };

  layers::StemConvolution stem_;
  std::vector<Block> blocks_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_LITE_TRUNK_H_
