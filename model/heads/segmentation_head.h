#ifndef SFMAMBA_MODEL_HEADS_SEGMENTATION_HEAD_H_
#define SFMAMBA_MODEL_HEADS_SEGMENTATION_HEAD_H_

#include <vector>

#include "ATen/core/Tensor.h"
#include "model/heads/head.h"
#include "model/heads/pyramid_fusion.h"
#include "model/layers/convolution.h"

namespace sfmamba::heads {

// UperNet: pooled context joins the coarsest map, each map's content is added
// to the finer ones, and all together are classified at stride 4; the logits
// are resized to the input, then to the picture, and the best class of each
// pixel is the answer. Source: UPerNet (arXiv 1807.10221), 3; docs/heads.md,
// "UperNet".
class SegmentationHead : public Head {
 public:
  // Takes "decode_head" from `scope`. The backbone's four maps have
  // `in_channels` channels.
  SegmentationHead(const std::vector<int>& in_channels, int channels,
                   int num_classes, const weights::StateDict::Scope& scope,
                   const layers::LayerOptions& options);

  std::vector<model::Result> Forward(
      const layers::Features& features,
      absl::Span<const ImageInfo> images) const override;

  // Its steps, for tests and benchmarks. Maps are [N, channels, H, W].

  // The coarsest map with its context at four scales.
  at::Tensor Pool(const at::Tensor& map) const;
  // The maps at one width, the coarser ones' content added to the finer ones.
  layers::Features Merge(const layers::Features& features) const;
  // The same, all but the coarsest through a 3x3 convolution of their own.
  layers::Features Refine(const layers::Features& merged) const;
  // Four such maps as one of the first one's size, fp32.
  at::Tensor Fuse(const layers::Features& refined) const {
    return fusion_.Forward(refined);
  }
  // [N, num_classes, H, W], fp32, channels-last in memory.
  at::Tensor Classify(const at::Tensor& fused) const;
  // logits [num_classes, H, W] of one image.
  model::Segmentation Label(const at::Tensor& logits,
                            const ImageInfo& image) const;

 private:
  std::vector<layers::Convolution> pools_;     // Of the pooled maps.
  PyramidFusion bottleneck_;                   // Of the coarsest map and them.
  std::vector<layers::Convolution> laterals_;  // Of the finer maps, 1x1,
  std::vector<layers::Convolution> outputs_;   // and 3x3.
  PyramidFusion fusion_;
  layers::Convolution classifier_;
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_SEGMENTATION_HEAD_H_
