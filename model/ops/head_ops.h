#ifndef SFMAMBA_MODEL_OPS_HEAD_OPS_H_
#define SFMAMBA_MODEL_OPS_HEAD_OPS_H_

#include <optional>
#include <vector>

#include "ATen/core/Tensor.h"
#include "model/ops/weight_transforms.h"

namespace sfmamba::ops {

struct PoolingParameters {
  std::optional<BatchNorm> norm;  // [C]
};

// Pools a classifier's last map. Immutable, so thread-safe.
class PoolingOp {
 public:
  virtual ~PoolingOp() = default;

  // Applies the BatchNorm, if any, to map [N, C, H, W] and returns the mean
  // over its pixels, [N, C] in fp32.
  virtual at::Tensor Forward(const at::Tensor& map) const = 0;
};

struct PyramidFusionParameters {
  std::vector<int> in_channels;  // By map.
  Weights weights;               // [out, sum of in_channels, 3, 3], no bias.
  BatchNorm norm;                // [out]
  int size = 0;  // The expected side of the first map in pixels, a hint.
};

// Resizes maps (bilinearly) to the size of the first one, concatenates them and
// applies a 3x3 convolution, a BatchNorm and a ReLU. Immutable, so thread-safe.
class PyramidFusionOp {
 public:
  virtual ~PyramidFusionOp() = default;

  // Returns [N, out, H_0, W_0], fp32. Map i is [N, in_channels[i], H_i, W_i].
  virtual at::Tensor Forward(const std::vector<at::Tensor>& maps) const = 0;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_HEAD_OPS_H_
