#ifndef SFMAMBA_MODEL_PATCH_EMBED_H_
#define SFMAMBA_MODEL_PATCH_EMBED_H_

#include "ATen/core/Tensor.h"
#include "model/convolution.h"
#include "model/state_dict.h"

namespace sfmamba {

// The stem: images [N, 3, H, W] to [N, dim, ceil(H/4), ceil(W/4)] by two
// convolutions of stride 2. Source: MambaVision (arXiv 2407.08083), 3.1.
class PatchEmbed {
 public:
  PatchEmbed(const StateDict::Scope& scope, int in_dim, int dim, int image_size,
             const LayerOptions& options);

  at::Tensor forward(const at::Tensor& images) const {
    return second_.forward(first_.forward(images));
  }

 private:
  Convolution first_, second_;
};

}  // namespace sfmamba

#endif  // SFMAMBA_MODEL_PATCH_EMBED_H_
