#ifndef SFMAMBA_MODEL_HEADS_FEATURE_PYRAMID_H_
#define SFMAMBA_MODEL_HEADS_FEATURE_PYRAMID_H_

#include <vector>

#include "model/layers/convolution.h"
#include "model/layers/features.h"
#include "model/layers/layer_options.h"
#include "model/weights/state_dict.h"

namespace sfmamba::heads {

// Pixels of the network's input a pixel of level `level`, along a side.
inline int PyramidStride(int level) { return 4 << level; }

// The backbone's maps brought to one width, the coarse ones' content added to
// the finer ones, and a coarser level on top.
// Source: FPN (arXiv 1612.03144), 3; docs/heads.md, "Feature pyramid".
// Immutable, so thread-safe.
class FeaturePyramid {
 public:
  // Takes "lateral_convs" and "fpn_convs" from `scope`. The backbone's maps
  // have `in_channels` channels, from fine to coarse.
  FeaturePyramid(const std::vector<int>& in_channels, int channels,
                 const weights::StateDict::Scope& scope,
                 const layers::LayerOptions& options);

  // Maps [N, channels, H, W], fp32, channels-last in memory: one for each of
  // `features` and one of half the last one's sides, rounded up.
  layers::Features Forward(const layers::Features& features) const;

 private:
  std::vector<layers::Convolution> laterals_, outputs_;
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_FEATURE_PYRAMID_H_
