#include "model/backbones/efficient_vim_backbone.h"

#include <utility>

#include "ATen/TensorOperators.h"
#include "ATen/ops/bmm.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/ones.h"
#include "ATen/ops/relu.h"
#include "ATen/ops/sigmoid.h"
#include "ATen/ops/silu.h"
#include "ATen/ops/softmax.h"
#include "absl/strings/str_cat.h"

namespace sfmamba::backbones {
namespace {

constexpr double kEps = 1e-5;
constexpr int kExpand = 4;
using layers::Convolution;

int Halved(int size) { return (size + 1) / 2; }

// Takes a convolution "conv" without bias and a BatchNorm "norm" from `scope`.
// Folds them into one convolution.
ops::Weights TakeFolded(const weights::StateDict::Scope& scope,
                        const Convolution::Shape& shape) {
  return ops::FoldBatchNorm(
      Convolution::Take(scope.Sub("conv"), shape, /*bias=*/false),
      ops::BatchNorm::Take(scope.Sub("norm"), shape.out, kEps));
}

Convolution TakeConvolution(const weights::StateDict::Scope& scope,
                            const Convolution::Shape& shape,
                            ops::Activation activation,
                            const ops::Implementation& implementation) {
  return Convolution(shape, TakeFolded(scope, shape), std::nullopt, activation,
                     implementation);
}

Convolution::Shape Pointwise(int in, int out, int size) {
  Convolution::Shape shape{in, out, /*stride=*/1, size};
  shape.kernel = 1;
  return shape;
}

Convolution::Shape Depthwise(int width, int stride, int size) {
  Convolution::Shape shape{width, width, stride, size};
  shape.groups = width;
  return shape;
}

// Returns a convolution that computes rest * x + part * d(x), where d is the
// depthwise convolution with `weights`. This sum is a depthwise convolution,
// too. `part` and `rest` are fp64 [width].
Convolution Mix(const Convolution::Shape& shape, const ops::Weights& weights,
                const at::Tensor& part, const at::Tensor& rest,
                const ops::Implementation& implementation) {
  const int64_t width = shape.out;
  at::Tensor taps =
      weights.weight.to(at::kDouble) * part.view({width, 1, 1, 1});
  taps.select(3, 1).select(2, 1).add_(rest.view({width, 1}));
  const ops::Weights mixed{
      taps.to(at::kFloat),
      (weights.bias.to(at::kDouble) * part).to(at::kFloat)};
  return Convolution(shape, mixed, std::nullopt, ops::Activation::kNone,
                     implementation);
}

// Takes a depthwise convolution d from `scope`. Returns a convolution that
// computes (1 - part) * x + part * d(x).
Convolution TakeMixed(const weights::StateDict::Scope& scope, int width,
                      int size, const at::Tensor& part,
                      const ops::Implementation& implementation) {
  const Convolution::Shape shape = Depthwise(width, /*stride=*/1, size);
  return Mix(shape, TakeFolded(scope, shape), part, 1 - part, implementation);
}

// Takes a depthwise convolution d from `scope`. Returns a convolution that
// computes x + d(x).
Convolution TakeResidual(const weights::StateDict::Scope& scope, int width,
                         int size, const ops::Implementation& implementation) {
  const Convolution::Shape shape = Depthwise(width, /*stride=*/1, size);
  const ops::Weights weights = TakeFolded(scope, shape);
  const at::Tensor ones =
      at::ones({width}, weights.bias.options().dtype(at::kDouble));
  return Mix(shape, weights, ones, ones, implementation);
}

ops::Weights TakeGate(const weights::StateDict::Scope& scope, int in, int out) {
  return {scope.Take("weight", {out, in, 1, 1}).view({out, in}),
          scope.Take("bias", {out})};
}

// Takes a convolution along sequences from `scope`. Its kernel has one tap, so
// it becomes a linear layer.
layers::Linear TakeLinear(const weights::StateDict::Scope& scope, int in,
                          int out, const ops::Implementation& implementation) {
  return layers::Linear(
      {{scope.Take("conv.weight", {out, in, 1}).view({out, in}), {}}},
      implementation);
}

// Returns the map [N, C, H, W] as [N, C, H * W] in fp32. The map may have any
// order in memory.
at::Tensor Pixels(const at::Tensor& map) {
  return map.to(at::kFloat).flatten(2);
}

}  // namespace

StateMixer::StateMixer(const weights::StateDict::Scope& scope, int width,
                       int states, int size,
                       const ops::Implementation& implementation)
    : states_(states),
      project_(Pointwise(width, 3 * states, size),
               {scope.Take("BCdt_proj.conv.weight", {3 * states, width, 1})
                    .unsqueeze(3),
                {}},
               std::nullopt, ops::Activation::kNone, implementation),
      convolve_(Depthwise(3 * states, /*stride=*/1, size),
                Convolution::Take(scope.Sub("dw.conv"),
                                  Depthwise(3 * states, /*stride=*/1, size),
                                  /*bias=*/false),
                std::nullopt, ops::Activation::kNone, implementation),
      hz_(TakeLinear(scope.Sub("hz_proj"), width, 2 * width, implementation)),
      out_(TakeLinear(scope.Sub("out_proj"), width, width, implementation)),
      skip_(scope.Take("D", {1})) {
  // The tensor "A" is not used. It is the same for all pixels, so it cancels
  // out in the softmax over the pixels. It is taken here, because every tensor
  // of a checkpoint must be taken.
  scope.Take("A", {states});
}

StateMixer::Mixed StateMixer::Forward(const at::Tensor& map) const {
  const at::Tensor parts = Pixels(convolve_.Forward(project_.Forward(map)));
  const auto part = [&](int index) {
    return parts.narrow(1, index * states_, states_);
  };
  const at::Tensor mix = at::softmax(part(2), -1) * part(0);  // [N, n, L]
  const at::Tensor h = at::bmm(mix, Pixels(map).transpose(1, 2));
  const at::Tensor hz = hz_.Forward(h).to(at::kFloat);
  const int64_t width = map.size(1);
  const at::Tensor gated =
      hz.narrow(2, 0, width) * (at::silu(hz.narrow(2, width, width)) + skip_);
  const at::Tensor states = out_.Forward(gated).to(at::kFloat);
  // The shape is [N, L, width]. Most devices store a map in this order.
  const at::Tensor y = at::bmm(part(1).transpose(1, 2), states);
  return {y.view({map.size(0), map.size(2), map.size(3), width})
              .permute({0, 3, 1, 2}),
          states};
}

EfficientVimBlock::EfficientVimBlock(const weights::StateDict::Scope& scope,
                                     int width, int states, int size,
                                     const ops::Implementation& implementation)
    : EfficientVimBlock(
          scope, width, states, size,
          at::sigmoid(scope.Take("alpha", {4, width}).to(at::kDouble)),
          implementation) {}

EfficientVimBlock::EfficientVimBlock(const weights::StateDict::Scope& scope,
                                     int width, int states, int size,
                                     const at::Tensor& parts,
                                     const ops::Implementation& implementation)
    : dwconv1_(TakeMixed(scope.Sub("dwconv1"), width, size, parts[0],
                         implementation)),
      dwconv2_(TakeMixed(scope.Sub("dwconv2"), width, size, parts[2],
                         implementation)),
      norm_(scope.Sub("norm"), width, implementation),
      mixer_(scope.Sub("mixer"), width, states, size, implementation),
      fc1_(TakeConvolution(scope.Sub("ffn.fc1"),
                           Pointwise(width, kExpand * width, size),
                           ops::Activation::kRelu, implementation)),
      fc2_(Pointwise(kExpand * width, width, size),
           ops::FoldScale(TakeFolded(scope.Sub("ffn.fc2"),
                                     Pointwise(kExpand * width, width, size)),
                          parts[3].to(at::kFloat)),
           std::nullopt, ops::Activation::kNone, implementation),
      mixer_weight_(parts[1].to(at::kFloat).view({width, 1, 1})),
      mlp_rest_((1 - parts[3]).to(at::kFloat).view({width, 1, 1})) {}

StateMixer::Mixed EfficientVimBlock::Forward(const at::Tensor& map) const {
  at::Tensor x = dwconv1_.Forward(map).to(at::kFloat);
  StateMixer::Mixed mixed = mixer_.Forward(norm_.ForwardMap(x));
  x = x + mixer_weight_ * (mixed.map - x);
  x = dwconv2_.Forward(x).to(at::kFloat);
  const at::Tensor y = fc2_.Forward(fc1_.Forward(x)).to(at::kFloat);
  return {x * mlp_rest_ + y, mixed.states};
}

EfficientVimMerge::EfficientVimMerge(const weights::StateDict::Scope& scope,
                                     int in, int out, int size,
                                     const ops::Implementation& implementation)
    : dwconv1_(TakeResidual(scope.Sub("dwconv1"), in, size, implementation)),
      expand_(TakeConvolution(scope.Sub("conv.0"),
                              Pointwise(in, kExpand * out, size),
                              ops::Activation::kRelu, implementation)),
      reduce_(TakeConvolution(scope.Sub("conv.1"),
                              Depthwise(kExpand * out, /*stride=*/2, size),
                              ops::Activation::kRelu, implementation)),
      project_(TakeConvolution(scope.Sub("conv.3"),
                               Pointwise(kExpand * out, out, Halved(size)),
                               ops::Activation::kNone, implementation)),
      dwconv2_(TakeResidual(scope.Sub("dwconv2"), out, Halved(size),
                            implementation)),
      pooling_(implementation.MakePooling({})),
      squeeze_({TakeGate(scope.Sub("conv.2.fc1"), kExpand * out, out)},
               implementation),
      excite_({TakeGate(scope.Sub("conv.2.fc2"), out, kExpand * out)},
              implementation) {}

at::Tensor EfficientVimMerge::Forward(const at::Tensor& map) const {
  const at::Tensor y = reduce_.Forward(expand_.Forward(dwconv1_.Forward(map)));
  const at::Tensor gate = at::sigmoid(
      excite_.Forward(at::relu(squeeze_.Forward(pooling_->Forward(y)))));
  return dwconv2_.Forward(
      project_.Forward(y * gate.to(y.scalar_type()).unsqueeze(2).unsqueeze(3)));
}

EfficientVimBackbone::EfficientVimBackbone(
    const model::BackboneConfig& config, int image_size, FeatureMaps maps,
    const weights::StateDict::Scope& scope,
    const ops::Implementation& implementation)
    : maps_(maps) {
  const model::EfficientVimConfig& own = config.efficient_vim;
  const weights::StateDict::Scope stem = scope.Sub("patch_embed.conv");
  int size = image_size;
  for (int i = 0; i < 4; ++i) {
    const weights::StateDict::Scope layer = stem.Sub(absl::StrCat(i));
    const Convolution::Shape shape{i == 0 ? 3 : own.widths[0] >> (4 - i),
                                   own.widths[0] >> (3 - i), /*stride=*/2,
                                   size};
    const ops::Activation activation =
        i < 3 ? ops::Activation::kRelu : ops::Activation::kNone;
    if (i == 0) {
      first_.emplace(TakeFolded(layer, shape), std::nullopt, activation, size,
                     /*feeds_products=*/true, implementation);
    } else {
      stem_.push_back(
          TakeConvolution(layer, shape, activation, implementation));
    }
    size = Halved(size);
  }
  for (int stage = 0; stage < 3; ++stage) {
    const int width = own.widths[stage];
    const weights::StateDict::Scope level =
        scope.Sub(absl::StrCat("stages.", stage));
    std::vector<EfficientVimBlock>& blocks = stages_.emplace_back();
    for (int i = 0; i < own.depths[stage]; ++i) {
      blocks.emplace_back(level.Sub(absl::StrCat("blocks.", i)), width,
                          own.states[stage], size, implementation);
    }
    norms_.emplace_back(scope.Sub(absl::StrCat("norm.", stage)), width,
                        implementation);
    if (stage == 2) break;
    merges_.emplace_back(level.Sub("downsample"), width, own.widths[stage + 1],
                         size, implementation);
    size = Halved(size);
  }
  norms_.emplace_back(scope.Sub("norm.3"), own.widths[2], implementation);
}

layers::Features EfficientVimBackbone::Forward(const ops::ImageBatch& images,
                                               int64_t /*fold_rows*/) const {
  layers::Features features;
  std::vector<at::Tensor> pooled;
  const auto pool = [&](const at::Tensor& map) {
    pooled.push_back(norms_[pooled.size()].ForwardMap(map).mean({2, 3}));
  };
  at::Tensor map = first_->Forward(images);
  for (const layers::Convolution& convolution : stem_) {
    map = convolution.Forward(map);
  }
  for (size_t stage = 0; stage < stages_.size(); ++stage) {
    at::Tensor states;
    for (const EfficientVimBlock& block : stages_[stage]) {
      StateMixer::Mixed mixed = block.Forward(map);
      map = std::move(mixed.map);
      states = std::move(mixed.states);
    }
    if (maps_ == FeatureMaps::kAll) features.push_back(map);
    // The states are pooled as if they were the pixels of a map.
    pool(states.transpose(1, 2).unsqueeze(3));
    if (stage < merges_.size()) map = merges_[stage].Forward(map);
  }
  pool(map);
  features.push_back(at::cat(pooled, 1).unsqueeze(2).unsqueeze(3));
  return features;
}

std::vector<int64_t> EfficientVimBackbone::Sequences(int64_t images, int64_t,
                                                     int64_t) const {
  return {images};
}

}  // namespace sfmamba::backbones
