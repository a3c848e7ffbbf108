#ifndef SFMAMBA_MODEL_HEADS_PYRAMID_FUSION_H_
#define SFMAMBA_MODEL_HEADS_PYRAMID_FUSION_H_

#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::heads {

// Resizes maps bilinearly to the size of the first map and concatenates them.
// Then applies a 3x3 convolution, a BatchNorm and a ReLU. Immutable, so
// thread-safe.
class PyramidFusion {
 public:
  // Takes "conv" and "bn" from `scope`. `in_channels` lists the maps' channels,
  // in order. `size` is the expected side of the first map, which affects the
  // choice of algorithms.
  PyramidFusion(const std::vector<int>& in_channels, int out_channels, int size,
                const weights::StateDict::Scope& scope,
                const ops::Implementation& implementation);

  // Returns [N, out_channels, H_0, W_0], fp32. Map i is [N, in_channels[i],
  // H_i, W_i].
  at::Tensor Forward(const std::vector<at::Tensor>& maps) const {
    return op_->Forward(maps);
  }

 private:
  std::unique_ptr<const ops::PyramidFusionOp> op_;
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_PYRAMID_FUSION_H_
