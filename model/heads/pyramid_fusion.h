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

// Maps of several sizes, resized (bilinear) to the size of the first and
// concatenated, through a 3x3 convolution, a BatchNorm and a ReLU. Immutable,
// so thread-safe.
//
// Fused on the CPU, nothing is concatenated: the first map is convolved, each
// other passes the kernel's nine taps at its own size, and what they give is
// resized and added. That is the same sum in another order, with a quarter of
// the products for a map of half the sides.
class PyramidFusion {
 public:
  // Takes "conv" and "bn" from `scope`, for maps of `in_channels` in this
  // order. `size` is the expected side of the first map, a hint.
  PyramidFusion(const std::vector<int>& in_channels, int out_channels, int size,
                const weights::StateDict::Scope& scope,
                const layers::LayerOptions& options);

  // Maps [N, in_channels[i], H_i, W_i] to [N, out_channels, H_0, W_0], fp32.
  at::Tensor Forward(const std::vector<at::Tensor>& maps) const;

 private:
  // Of each map but the first, [9 * out, in]; empty if plain or on a device.
  // Filled with first_.
  std::vector<layers::Linear> taps_;
  layers::Convolution first_;  // Of the first map; without taps_, of all.
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_PYRAMID_FUSION_H_
