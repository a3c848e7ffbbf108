#ifndef SFMAMBA_MODEL_BACKBONES_NORMED_STEM_H_
#define SFMAMBA_MODEL_BACKBONES_NORMED_STEM_H_

#include <optional>

#include "ATen/core/Tensor.h"
#include "model/config.h"
#include "model/layers/convolution.h"
#include "model/layers/layer_norm.h"
#include "model/layers/stem_convolution.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// Takes a 3x3 convolution of stride 2 with a bias from `scope`. `size` is the
// expected side of the input, which affects the choice of algorithms.
layers::Convolution TakeHalving(const weights::StateDict::Scope& scope, int in,
                                int out, int size,
                                const ops::Implementation& implementation);

// A stem of two convolutions of stride 2. The first one computes half of
// `width` channels, the second one all of them. A LayerNorm follows each
// convolution, but the first LayerNorm is optional. An activation precedes the
// second convolution.
class NormedStem {
 public:
  struct Names {
    const char *conv1, *norm1, *conv2, *norm2;  // norm1 may be null.
  };

  NormedStem(const weights::StateDict::Scope& scope, const Names& names,
             int width, float eps, model::Nonlinearity activation,
             int image_size, const ops::Implementation& implementation);

  // Maps images of H x W pixels to [N, width, ceil(H / 4), ceil(W / 4)].
  at::Tensor Forward(const ops::ImageBatch& images) const;

 private:
  const ops::Implementation& implementation_;
  const model::Nonlinearity activation_;
  layers::StemConvolution first_;
  std::optional<layers::LayerNorm> first_norm_;
  layers::Convolution second_;
  layers::LayerNorm second_norm_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_NORMED_STEM_H_
