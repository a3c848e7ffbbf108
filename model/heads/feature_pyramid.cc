#include "model/heads/feature_pyramid.h"

#include "ATen/ops/upsample_nearest2d.h"
#include "absl/strings/str_cat.h"

namespace sfmamba::heads {
namespace {

// The usual side of the first map in pixels, for the choice of algorithms.
// COCO's pictures are resized to a short side of 800 pixels. At stride 4, this
// gives 200 pixels.
constexpr int kTypicalSide = 200;

}  // namespace

FeaturePyramid::FeaturePyramid(const std::vector<int>& in_channels,
                               int channels,
                               const weights::StateDict::Scope& scope,
                               const ops::Implementation& implementation)
    : implementation_(implementation) {
  const auto take = [&](const std::string& name,
                        const layers::Convolution::Shape& shape) {
    const ops::Weights weights = layers::Convolution::Take(
        scope.Sub(absl::StrCat(name, ".conv")), shape, true);
    return layers::Convolution(shape, weights, {}, ops::Activation::kNone,
                               implementation);
  };
  for (size_t i = 0; i < in_channels.size(); ++i) {
    const int side = kTypicalSide >> i;
    laterals_.push_back(take(absl::StrCat("lateral_convs.", i),
                             {in_channels[i], channels, 1, side, 1}));
    outputs_.push_back(
        take(absl::StrCat("fpn_convs.", i), {channels, channels, 1, side, 3}));
  }
}

layers::Features FeaturePyramid::Forward(
    const layers::Features& features) const {
  layers::Features pyramid(features.size());
  at::Tensor merged;  // From the previous iteration.
  for (int i = features.size() - 1; i >= 0; --i) {
    const at::Tensor map =
        features[i].contiguous(at::MemoryFormat::ChannelsLast);
    if (!merged.defined()) {
      merged = laterals_[i].Forward(map);
    } else {
      // If the coarser map has only one pixel, its strides fit every memory
      // format. The resize may then return a map that is not channels-last, so
      // the result is made channels-last here.
      merged = at::upsample_nearest2d(merged, {map.size(2), map.size(3)})
                   .contiguous(at::MemoryFormat::ChannelsLast);
      laterals_[i].AddTo(merged, map);
    }
    pyramid[i] = implementation_.RoiMap(outputs_[i].Forward(merged));
  }
  // The fifth map is for the largest anchors. It consists of every second row
  // and column of the fourth.
  pyramid.push_back(implementation_.RoiMap(
      pyramid.back().slice(2, 0, {}, 2).slice(3, 0, {}, 2)));
  return pyramid;
}

}  // namespace sfmamba::heads
