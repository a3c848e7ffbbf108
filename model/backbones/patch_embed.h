#ifndef SFMAMBA_MODEL_BACKBONES_PATCH_EMBED_H_
#define SFMAMBA_MODEL_BACKBONES_PATCH_EMBED_H_

#include "ATen/core/Tensor.h"
#include "model/layers/convolution.h"
#include "model/layers/stem_convolution.h"
#include "model/ops/image_batch.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// The stem: two convolutions of stride 2 that map images of H x W pixels to [N,
// dim, ceil(H/4), ceil(W/4)]. Source: MambaVision (arXiv 2407.08083), 3.1.
class PatchEmbed {
 public:
  PatchEmbed(const weights::StateDict::Scope& scope, int in_dim, int dim,
             int image_size, const ops::Implementation& implementation);

  at::Tensor Forward(const ops::ImageBatch& images) const {
    return second_.Forward(first_.Forward(images));
  }

 private:
  layers::StemConvolution first_;
  layers::Convolution second_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_PATCH_EMBED_H_
