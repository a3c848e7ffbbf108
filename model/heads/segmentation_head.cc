#include "model/heads/segmentation_head.h"

#include <iterator>
#include <optional>
#include <string>

#include "ATen/TensorOperators.h"
#include "ATen/ops/adaptive_avg_pool2d.h"
#include "ATen/ops/isfinite.h"
#include "ATen/ops/upsample_bilinear2d.h"
#include "absl/strings/str_cat.h"
#include "model/layers/conv_module.h"

namespace sfmamba::heads {
namespace {

// The sides to which the coarsest map is pooled.
constexpr int kPoolSides[] = {1, 2, 3, 6};
constexpr int kMaps = 4;
// The usual side of the finest map in pixels, for the choice of algorithms.
// ADE20K's pictures are resized to a short side of 512 pixels. At stride 4,
// this gives 128 pixels.
constexpr int kTypicalSide = 128;

// Returns the checkpoint's name of the convolution that follows pooling i. In
// checkpoints, each element of psp_modules consists of the pooling, with number
// 0, and a convolution, with number 1.
std::string PoolName(int i) { return absl::StrCat("psp_modules.", i, ".1"); }

// Returns the numbers of channels of 1 + `count` maps. The first map has
// `first` channels, and each of the others has `others` channels.
std::vector<int> Channels(int first, int others, int count) {
  std::vector<int> channels(1 + count, others);
  channels[0] = first;
  return channels;
}

layers::Convolution MakeClassifier(int channels, int num_classes,
                                   const weights::StateDict::Scope& scope,
                                   const ops::Implementation& implementation) {
  layers::Convolution::Shape shape{channels, num_classes, /*stride=*/1,
                                   kTypicalSide, /*kernel=*/1};
  shape.is_output = true;
  return layers::Convolution(
      shape, layers::Convolution::Take(scope, shape, /*bias=*/true),
      std::nullopt, ops::Activation::kNone, implementation);
}

at::Tensor ResizedLike(const at::Tensor& map, const at::Tensor& other) {
  return at::upsample_bilinear2d(map, {other.size(2), other.size(3)},
                                 /*align_corners=*/false);
}

}  // namespace

SegmentationHead::SegmentationHead(const std::vector<int>& in_channels,
                                   int channels, int num_classes,
                                   const weights::StateDict::Scope& scope,
                                   const ops::Implementation& implementation)
    : implementation_(implementation),
      bottleneck_(Channels(in_channels.back(), channels, std::size(kPoolSides)),
                  channels, kTypicalSide >> (kMaps - 1),
                  scope.Sub("decode_head.bottleneck"), implementation),
      fusion_(Channels(channels, channels, kMaps - 1), channels, kTypicalSide,
              scope.Sub("decode_head.fpn_bottleneck"), implementation),
      classifier_(MakeClassifier(channels, num_classes,
                                 scope.Sub("decode_head.conv_seg"),
                                 implementation)) {
  const weights::StateDict::Scope head = scope.Sub("decode_head");
  for (size_t i = 0; i < std::size(kPoolSides); ++i) {
    pools_.push_back(layers::TakeConvModule(head.Sub(PoolName(i)),
                                            {in_channels.back(), channels,
                                             /*stride=*/1, kPoolSides[i],
                                             /*kernel=*/1},
                                            implementation));
  }
  for (int i = 0; i < kMaps - 1; ++i) {
    const int side = kTypicalSide >> i;
    laterals_.push_back(layers::TakeConvModule(
        head.Sub(absl::StrCat("lateral_convs.", i)),
        {in_channels[i], channels, /*stride=*/1, side, /*kernel=*/1},
        implementation));
    outputs_.push_back(layers::TakeConvModule(
        head.Sub(absl::StrCat("fpn_convs.", i)),
        {channels, channels, /*stride=*/1, side, /*kernel=*/3},
        implementation));
  }
}

at::Tensor SegmentationHead::Pool(const at::Tensor& map) const {
  std::vector<at::Tensor> maps = {map};
  for (size_t i = 0; i < pools_.size(); ++i) {
    const int64_t side = kPoolSides[i];
    maps.push_back(
        pools_[i].Forward(at::adaptive_avg_pool2d(map, {side, side})));
  }
  return bottleneck_.Forward(maps);
}

layers::Features SegmentationHead::Merge(
    const layers::Features& features) const {
  layers::Features merged(kMaps);
  merged.back() = Pool(features.back());
  for (int i = kMaps - 2; i >= 0; --i) {
    at::Tensor lateral = laterals_[i].Forward(features[i]).to(at::kFloat);
    merged[i] = lateral.add_(ResizedLike(merged[i + 1], lateral));
  }
  return merged;
}

layers::Features SegmentationHead::Refine(
    const layers::Features& merged) const {
  layers::Features refined = merged;
  for (int i = 0; i < kMaps - 1; ++i) {
    refined[i] = outputs_[i].Forward(merged[i]);
  }
  return refined;
}

at::Tensor SegmentationHead::Classify(const at::Tensor& fused) const {
  return classifier_.Forward(fused).contiguous(at::MemoryFormat::ChannelsLast);
}

model::Segmentation SegmentationHead::Label(const at::Tensor& logits,
                                            const ImageInfo& image) const {
  model::Segmentation result;
  if (!at::isfinite(logits).all().item<bool>()) {
    result.finite = false;
    return result;
  }
  const auto options =
      model::OptionsOf<model::SegmentationOptions>(image.options);
  if (options.logits) {
    const at::Tensor values =
        logits.permute({1, 2, 0}).to(at::kCPU, at::kFloat).contiguous();
    const float* const data = values.const_data_ptr<float>();
    result.height = logits.size(1);
    result.width = logits.size(2);
    result.logits.assign(data, data + values.numel());
    return result;
  }
  result.height = options.original_size ? image.original_height : image.height;
  result.width = options.original_size ? image.original_width : image.width;
  implementation_.SegmentationArgmax(logits, image.height, image.width,
                                     options.confidence, &result);
  return result;
}

std::vector<model::Result> SegmentationHead::Forward(
    const layers::Features& features,
    absl::Span<const ImageInfo> images) const {
  const at::Tensor logits = Classify(Fuse(Refine(Merge(features))));
  std::vector<model::Result> results;
  for (size_t i = 0; i < images.size(); ++i) {
    results.push_back(Label(logits[i], images[i]));
  }
  return results;
}

}  // namespace sfmamba::heads
