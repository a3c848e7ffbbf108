#include "model/heads/mask_head.h"

#include "ATen/ops/baddbmm.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/zeros_like.h"
#include "absl/strings/str_cat.h"

namespace sfmamba::heads {
namespace {

// The number of regions that a thread runs through the layers together. Their
// maps fit into its cache. The number is small enough that threads can divide
// the usual 100 regions evenly.
constexpr int64_t kRegionsAtOnce = 10;

std::vector<layers::Convolution> MakeConvolutions(
    const model::DetectorConfig& config, const weights::StateDict::Scope& scope,
    const ops::Implementation& implementation) {
  layers::Convolution::Shape shape{config.channels, config.channels, 1,
                                   config.mask_roi_size, 3};
  shape.maps = kRegionsAtOnce;
  std::vector<layers::Convolution> convs;
  for (int i = 0; i < config.mask_convs; ++i) {
    const weights::StateDict::Scope conv =
        scope.Sub(absl::StrCat("convs.", i, ".conv"));
    convs.emplace_back(shape, layers::Convolution::Take(conv, shape, true),
                       std::nullopt, ops::Activation::kRelu, implementation);
  }
  return convs;
}

// Takes a transposed convolution whose stride equals its kernel size. It is a
// linear layer that maps each pixel to four pixels.
layers::Linear MakeUpsample(int channels,
                            const weights::StateDict::Scope& scope,
                            const ops::Implementation& implementation) {
  const at::Tensor weight =
      scope.Take("weight", {channels, channels, 2, 2});  // [in, out, 2, 2]
  const at::Tensor bias = scope.Take("bias", {channels});
  return layers::Linear(
      {{weight.permute({2, 3, 1, 0}).reshape({4 * channels, channels}),
        bias.repeat({4})},
       {}},
      implementation);
}

ops::Weights TakeLogits(int channels, int out,
                        const weights::StateDict::Scope& scope) {
  return {scope.Take("weight", {out, channels, 1, 1}).view({out, channels}),
          scope.Take("bias", {out})};
}

}  // namespace

MaskHead::MaskHead(const model::DetectorConfig& config, int num_classes,
                   const weights::StateDict::Scope& scope,
                   const ops::Implementation& implementation)
    : implementation_(implementation),
      convs_(MakeConvolutions(config, scope, implementation)),
      upsample_(
          MakeUpsample(config.channels, scope.Sub("upsample"), implementation)),
      logits_(TakeLogits(config.channels,
                         config.class_agnostic_masks ? 1 : num_classes,
                         scope.Sub("conv_logits"))) {}

at::Tensor MaskHead::ForwardFew(const at::Tensor& features,
                                const at::Tensor& labels) const {
  at::Tensor x = features;
  for (const layers::Convolution& conv : convs_) x = conv.Forward(x);
  const int64_t count = x.size(0), channels = x.size(1), side = x.size(2);
  const at::Tensor pixels = upsample_.Forward(x.permute({0, 2, 3, 1}))
                                .relu_()
                                .to(at::kFloat)
                                .view({count, -1, channels});
  // Only the logits of a region's own class are computed. For COCO, this is one
  // of 80 classes.
  const at::Tensor channel =
      logits_.bias.size(0) == 1 ? at::zeros_like(labels) : labels;
  const at::Tensor weight = logits_.weight.index_select(0, channel);
  const at::Tensor bias = logits_.bias.index_select(0, channel);
  return at::baddbmm(bias.view({count, 1, 1}), pixels, weight.unsqueeze(2))
      // The four results of each pixel become a square of 2 x 2 pixels.
      .view({count, side, side, 2, 2})
      .permute({0, 1, 3, 2, 4})
      .reshape({count, 2 * side, 2 * side});
}

at::Tensor MaskHead::Forward(const at::Tensor& features,
                             const at::Tensor& labels) const {
  const int64_t count = features.size(0), side = 2 * features.size(2);
  const at::Tensor logits =
      at::empty({count, side, side}, features.options().dtype(at::kFloat));
  implementation_.ForEachPart(
      count, kRegionsAtOnce, [&](int64_t first, int64_t regions) {
        logits.narrow(0, first, regions)
            .copy_(ForwardFew(features.narrow(0, first, regions),
                              labels.narrow(0, first, regions)));
      });
  return logits;
}

}  // namespace sfmamba::heads
