#ifndef SFMAMBA_MODEL_HEADS_FEATURE_PYRAMID_H_
#define SFMAMBA_MODEL_HEADS_FEATURE_PYRAMID_H_

#include <vector>

#include "model/layers/convolution.h"
#include "model/layers/features.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::heads {

// Returns the stride of level `level`, in pixels of the network's input.
inline int PyramidStride(int level) { return 4 << level; }

// Makes a feature pyramid. Converts the backbone's maps to the same number of
// channels, adds each map to the next finer one, and appends a coarser level.
// Source: FPN (arXiv 1612.03144), 3; docs/heads.md, "Feature pyramid".
// Immutable, so thread-safe.
class FeaturePyramid {
 public:
  // Takes "lateral_convs" and "fpn_convs" from `scope`. `in_channels` lists the
  // channels of the backbone's maps, from fine to coarse.
  FeaturePyramid(const std::vector<int>& in_channels, int channels,
                 const weights::StateDict::Scope& scope,
                 const ops::Implementation& implementation);

  // Returns one map [N, channels, H, W] for each of `features`, and one more
  // with half the sides of the last, rounded up. The maps have the form that
  // RoiAlign() reads.
  layers::Features Forward(const layers::Features& features) const;

 private:
  const ops::Implementation& implementation_;
  std::vector<layers::Convolution> laterals_, outputs_;
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_FEATURE_PYRAMID_H_
