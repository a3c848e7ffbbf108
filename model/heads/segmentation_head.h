#ifndef SFMAMBA_MODEL_HEADS_SEGMENTATION_HEAD_H_
#define SFMAMBA_MODEL_HEADS_SEGMENTATION_HEAD_H_

#include <vector>

#include "ATen/core/Tensor.h"
#include "model/heads/head.h"
#include "model/heads/pyramid_fusion.h"
#include "model/layers/convolution.h"

namespace sfmamba::heads {

// The head of UperNet. It adds pooled context to the coarsest map, then adds
// each map to the next finer one. It fuses the maps and classifies the result
// at stride 4. The logits are resized to the input's size and then to the
// picture's. The result contains the best class of each pixel. Source: UPerNet
// (arXiv 1807.10221), 3; docs/heads.md, "UperNet".
class SegmentationHead : public Head {
 public:
  // Takes "decode_head" from `scope`. `in_channels` lists the channels of the
  // backbone's four maps.
  SegmentationHead(const std::vector<int>& in_channels, int channels,
                   int num_classes, const weights::StateDict::Scope& scope,
                   const ops::Implementation& implementation);

  std::vector<model::Result> Forward(
      const layers::Features& features,
      absl::Span<const ImageInfo> images) const override;

  // The following functions are the steps of Forward(). They are public for
  // tests and benchmarks. Maps are [N, channels, H, W].

  // Merges the coarsest map with its context, which is pooled at four scales.
  at::Tensor Pool(const at::Tensor& map) const;
  // Converts the maps to the same number of channels and adds each map to the
  // next finer one.
  layers::Features Merge(const layers::Features& features) const;
  // Applies a 3x3 convolution to each map except the coarsest.
  layers::Features Refine(const layers::Features& merged) const;
  // Fuses the four maps into one, fp32, with the size of the first map.
  at::Tensor Fuse(const layers::Features& refined) const {
    return fusion_.Forward(refined);
  }
  // Returns logits [N, num_classes, H, W], fp32, channels-last in memory.
  at::Tensor Classify(const at::Tensor& fused) const;
  // Returns the best class of each pixel of one image, given logits
  // [num_classes, H, W]. If the image's options request logits, returns these
  // logits instead.
  model::Segmentation Label(const at::Tensor& logits,
                            const ImageInfo& image) const;

 private:
  const ops::Implementation& implementation_;
  std::vector<layers::Convolution> pools_;     // For the pooled maps.
  PyramidFusion bottleneck_;                   // For coarsest and pooled maps.
  std::vector<layers::Convolution> laterals_;  // 1x1, for the finer maps.
  std::vector<layers::Convolution> outputs_;   // 3x3, for the finer maps.
  PyramidFusion fusion_;
  layers::Convolution classifier_;
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_SEGMENTATION_HEAD_H_
