#ifndef SFMAMBA_MODEL_BACKBONES_PATCH_EMBED_H_
#define SFMAMBA_MODEL_BACKBONES_PATCH_EMBED_H_

#include "ATen/core/Tensor.h"
#include "model/layers/convolution.h"
#include "model/layers/image_batch.h"
#include "model/layers/stem_convolution.h"
#include "model/weights/state_dict.h"

namespace sfmamba {

// The stem: images of H x W pixels to [N, dim, ceil(H/4), ceil(W/4)] by two
// convolutions of stride 2. Source: MambaVision (arXiv 2407.08083), 3.1.
class PatchEmbed {
 public:
  PatchEmbed(const StateDict::Scope& scope, int in_dim, int dim, int image_size,
             const LayerOptions& options);

  at::Tensor forward(const ImageBatch& images) const {
    return second_.forward(first_.forward(images));
  }

 private:
  StemConvolution first_;
  Convolution second_;
};

}  // namespace sfmamba

#endif  // SFMAMBA_MODEL_BACKBONES_PATCH_EMBED_H_
