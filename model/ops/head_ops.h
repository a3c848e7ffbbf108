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

  // Applies the BatchNorm, if there is one, to map [N, C, H, W]. Returns the
  // mean over the pixels, [N, C] in fp32.
  virtual at::Tensor Forward(const at::Tensor& map) const = 0;
};

struct PyramidFusionParameters {
  std::vector<int> in_channels;  // For each map.
  Weights weights;  // [out, sum of in_channels, 3, 3], without bias.
  BatchNorm norm;   // [out]
  int size = 0;     // The expected side of the first map in pixels.
};

// Resizes maps bilinearly to the size of the first map and concatenates them.
// Then applies a 3x3 convolution, a BatchNorm and a ReLU. Immutable, so
// thread-safe.
class PyramidFusionOp {
 public:
  virtual ~PyramidFusionOp() = default;

  // Returns [N, out, H_0, W_0], fp32. Map i is [N, in_channels[i], H_i, W_i].
  virtual at::Tensor Forward(const std::vector<at::Tensor>& maps) const = 0;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_HEAD_OPS_H_
