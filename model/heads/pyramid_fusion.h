#ifndef SFMAMBA_MODEL_HEADS_PYRAMID_FUSION_H_
#define SFMAMBA_MODEL_HEADS_PYRAMID_FUSION_H_

#include <optional>
#include <vector>

#include "ATen/core/Tensor.h"
#include "model/layers/convolution.h"
#include "model/layers/layer_options.h"
#include "model/layers/linear.h"
#include "model/weights/state_dict.h"

namespace sfmamba::heads {

// Resizes maps (bilinearly) to the size of the first one, concatenates them and
// applies a 3x3 convolution, a BatchNorm and a ReLU. Immutable, so thread-safe.
//
// If fused on the CPU, nothing is concatenated. The first map is convolved.
// Each other map is multiplied by the kernel's nine taps at its own size, and
// the products are resized and added. This is the same sum in another order,
// with a quarter of the multiplications for a map of half the sides.
class PyramidFusion {
 public:
  // Takes "conv" and "bn" from `scope`. `in_channels` are the maps' channels,
  // in order. `size` is the expected side of the first map, a hint.
  PyramidFusion(const std::vector<int>& in_channels, int out_channels, int size,
                const weights::StateDict::Scope& scope,
                const layers::LayerOptions& options);

  // Returns [N, out_channels, H_0, W_0], fp32. Map i is [N, in_channels[i],
  // H_i, W_i].
  at::Tensor Forward(const std::vector<at::Tensor>& maps) const;

 private:
  // The taps [9 * out, in] for each map but the first. Empty if not fused or on
  // a device. Filled while first_ is initialised.
  std::vector<layers::Linear> taps_;
  layers::Convolution first_;  // For the first map, or for all without taps_.
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_PYRAMID_FUSION_H_
