#include "model/heads/roi_head.h"

#include "absl/strings/str_cat.h"
#include "model/heads/feature_pyramid.h"

namespace sfmamba::heads {
namespace {

// The number of pyramid levels from which regions are read. The fifth level is
// only for the region proposals.
constexpr int kLevels = 4;

}  // namespace

RoiHead::RoiHead(const model::DetectorConfig& config, int num_classes,
                 const weights::StateDict::Scope& scope,
                 const ops::Implementation& implementation)
    : implementation_(implementation), config_(config) {
  for (int i = 0; i < config.box_stages; ++i) {
    // If the cascade has several stages, the name of a head in the checkpoint
    // ends with the stage's number, for example "bbox_head.0". Otherwise, the
    // name has no number.
    const std::string stage =
        config.box_stages > 1 ? absl::StrCat(".", i) : std::string();
    box_heads_.emplace_back(config, num_classes, scope.Sub("bbox_head" + stage),
                            implementation);
    if (!config.masks) continue;
    mask_heads_.emplace_back(config, num_classes,
                             scope.Sub("mask_head" + stage), implementation);
  }
}

at::Tensor RoiHead::Extract(const layers::Features& pyramid,
                            const at::Tensor& rois, int size) const {
  std::vector<at::Tensor> maps;
  std::vector<int> strides;
  for (int i = 0; i < kLevels; ++i) {
    maps.push_back(pyramid[i][0]);
    strides.push_back(PyramidStride(i));
  }
  return implementation_.RoiAlign(maps, strides, rois, size,
                                  config_.finest_scale);
}

BoxOutput RoiHead::ForwardBoxes(int stage, const layers::Features& pyramid,
                                const at::Tensor& rois) const {
  const BoxOutput output =
      box_heads_[stage].Forward(Extract(pyramid, rois, config_.box_roi_size));
  return {output.logits.cpu(), output.deltas.cpu()};
}

std::vector<at::Tensor> RoiHead::ForwardMasks(const layers::Features& pyramid,
                                              const at::Tensor& rois,
                                              const at::Tensor& labels) const {
  const at::Tensor features = Extract(pyramid, rois, config_.mask_roi_size);
  std::vector<at::Tensor> logits;
  for (const MaskHead& head : mask_heads_) {
    logits.push_back(
        head.Forward(features, labels.to(features.device())).cpu());
  }
  return logits;
}

}  // namespace sfmamba::heads
