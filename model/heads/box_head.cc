#include "model/heads/box_head.h"

#include "ATen/ops/cat.h"
#include "ATen/ops/empty.h"
#include "absl/strings/str_cat.h"

namespace sfmamba::heads {
namespace {

constexpr double kEps = 1e-5;
// The number of regions that a thread runs through the convolutions together.
// The maps of these regions fit into the thread's cache. The number is small
// enough that threads can divide the usual 1000 regions evenly.
constexpr int64_t kRegionsAtOnce = 50;

// Reorders the columns of a linear layer's weight. In training, the layer read
// flattened maps [C, S, S]. Here, it reads flattened maps [S, S, C].
ops::Weights ForChannelsLast(const ops::Weights& weights,
                             const model::DetectorConfig& config) {
  const int64_t out = weights.weight.size(0), size = config.box_roi_size;
  return {weights.weight.view({out, config.channels, size, size})
              .permute({0, 2, 3, 1})
              .reshape({out, -1}),
          weights.bias};
}

std::vector<layers::Convolution> MakeConvolutions(
    const model::DetectorConfig& config, const weights::StateDict::Scope& scope,
    const ops::Implementation& implementation) {
  const int channels = config.channels;
  layers::Convolution::Shape shape{channels, channels, 1, config.box_roi_size,
                                   3};
  shape.maps = kRegionsAtOnce;
  std::vector<layers::Convolution> convs;
  for (int i = 0; i < config.box_convs; ++i) {
    const weights::StateDict::Scope conv =
        scope.Sub(absl::StrCat("shared_convs.", i));
    convs.emplace_back(
        shape, layers::Convolution::Take(conv.Sub("conv"), shape, false),
        ops::BatchNorm::Take(conv.Sub("bn"), channels, kEps),
        ops::Activation::kRelu, implementation);
  }
  return convs;
}

// Returns the number of values in a region's features.
int FlatWidth(const model::DetectorConfig& config) {
  return config.channels * config.box_roi_size * config.box_roi_size;
}

std::vector<layers::Linear> MakeHidden(
    const model::DetectorConfig& config, const weights::StateDict::Scope& scope,
    const ops::Implementation& implementation) {
  std::vector<layers::Linear> fcs;
  for (int i = 0; i < config.box_fcs; ++i) {
    ops::Weights weights = layers::Linear::Take(
        scope.Sub(absl::StrCat("shared_fcs.", i)),
        i == 0 ? FlatWidth(config) : config.fc_width, config.fc_width, true);
    if (i == 0) weights = ForChannelsLast(weights, config);
    fcs.emplace_back(ops::LinearParameters{weights, {}}, implementation);
  }
  return fcs;
}

// Makes one layer for both outputs, because both read the same features.
layers::Linear MakeOutput(const model::DetectorConfig& config, int num_classes,
                          const weights::StateDict::Scope& scope,
                          const ops::Implementation& implementation) {
  const int boxes = config.class_agnostic_boxes ? 1 : num_classes;
  const auto take = [&](const char* name, int out) {
    return layers::Linear::Take(scope.Sub(name), config.fc_width, out, true);
  };
  const ops::Weights logits = take("fc_cls", num_classes + 1);
  const ops::Weights deltas = take("fc_reg", 4 * boxes);
  return layers::Linear({{at::cat({logits.weight, deltas.weight}),
                          at::cat({logits.bias, deltas.bias})},
                         {},
                         ops::Epilogue::kNone,
                         /*is_output=*/true},
                        implementation);
}

// Returns maps [n, C, S, S] as [n, S * S * C]. This needs no copy if the maps
// are channels-last in memory.
at::Tensor Flatten(const at::Tensor& maps) {
  return maps.permute({0, 2, 3, 1}).reshape({maps.size(0), -1});
}

}  // namespace

BoxHead::BoxHead(const model::DetectorConfig& config, int num_classes,
                 const weights::StateDict::Scope& scope,
                 const ops::Implementation& implementation)
    : implementation_(implementation),
      num_classes_(num_classes),
      convs_(MakeConvolutions(config, scope, implementation)),
      fcs_(MakeHidden(config, scope, implementation)),
      output_(MakeOutput(config, num_classes, scope, implementation)) {}

at::Tensor BoxHead::Trunk(const at::Tensor& features) const {
  if (convs_.empty()) return Flatten(features);
  const int64_t count = features.size(0);
  const at::Tensor flat =
      at::empty({count, features[0].numel()}, features.options());
  implementation_.ForEachPart(
      count, kRegionsAtOnce, [&](int64_t first, int64_t regions) {
        at::Tensor x = features.narrow(0, first, regions);
        for (const layers::Convolution& conv : convs_) x = conv.Forward(x);
        flat.narrow(0, first, regions).copy_(Flatten(x));
      });
  return flat;
}

BoxOutput BoxHead::Forward(const at::Tensor& features) const {
  at::Tensor x = Trunk(features);
  for (const layers::Linear& fc : fcs_) x = fc.Forward(x).relu_();
  const at::Tensor output = output_.Forward(x);
  const int64_t logits = num_classes_ + 1;
  return {output.narrow(1, 0, logits),
          output.narrow(1, logits, output.size(1) - logits)};
}

}  // namespace sfmamba::heads
