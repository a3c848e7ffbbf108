#include "model/backbones/mamba_out_backbone.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "model/stage_geometry.h"

namespace sfmamba::backbones {
namespace {

constexpr float kEps = 1e-6f;

layers::LayerNorm TakeNorm(const weights::StateDict::Scope& scope, int width,
                           const ops::Implementation& implementation) {
  return layers::LayerNorm(scope, width, implementation, kEps);
}

ops::Weights TakeDepthwise(const weights::StateDict::Scope& scope,
                           int channels) {
  constexpr int kTaps = 7;
  return {scope.Take("weight", {channels, 1, kTaps, kTaps}),
          scope.Take("bias", {channels})};
}

}  // namespace

MambaOutDownsample::MambaOutDownsample(
    const weights::StateDict::Scope& scope, const model::MambaOutConfig& config,
    int stage, int size, const ops::Implementation& implementation)
    : norm_first_(config.rw),
      norm_(TakeNorm(scope.Sub("norm"),
                     config.widths[config.rw ? stage - 1 : stage],
                     implementation)),
      convolution_(TakeHalving(scope.Sub("conv"), config.widths[stage - 1],
                               config.widths[stage], size, implementation)) {}

at::Tensor MambaOutDownsample::Forward(const at::Tensor& map) const {
  return norm_first_ ? convolution_.Forward(norm_.ForwardMap(map))
                     : norm_.ForwardMap(convolution_.Forward(map));
}

GatedBlock::GatedBlock(const weights::StateDict::Scope& scope,
                       const model::MambaOutConfig& config, int stage,
                       const ops::Implementation& implementation)
    : norm_(TakeNorm(scope.Sub("norm"), config.widths[stage], implementation)),
      fc1_({layers::Linear::Take(scope.Sub("fc1"), config.widths[stage],
                                 2 * config.hidden[stage], /*bias=*/true),
            /*scale=*/{}, ops::Epilogue::kNone,
            /*is_output=*/false,
            /*feeds_products=*/true},
           implementation),
      gate_(implementation.MakeGatedConvolution(
          {TakeDepthwise(scope.Sub("conv"), config.conv[stage]), config.gate})),
      fc2_({layers::Linear::Take(scope.Sub("fc2"), config.hidden[stage],
                                 config.widths[stage], /*bias=*/true),
            config.rw ? scope.Take("ls.gamma", {config.widths[stage]})
                      : at::Tensor()},
           implementation) {}

void GatedBlock::Forward(ops::Residual& x, int64_t height,
                         int64_t width) const {
  const at::Tensor y =
      fc1_.Forward(norm_.Forward(x, height * width, /*swap=*/false));
  fc2_.AddTo(x, gate_->Forward(y.view({y.size(0), height, width, -1})));
}

MambaOutBackbone::MambaOutBackbone(const model::BackboneConfig& config,
                                   int image_size, FeatureMaps maps,
                                   const weights::StateDict::Scope& scope,
                                   const ops::Implementation& implementation)
    : maps_(maps),
      stem_(
          scope.Sub("stem"),
          {"conv1", config.mamba_out.rw ? nullptr : "norm1", "conv2", "norm2"},
          config.mamba_out.widths[0], kEps, config.mamba_out.gate, image_size,
          implementation),
      windows_(implementation.MakeWindows({config.mamba_out.rw})) {
  for (int stage = 0; stage < 4; ++stage) {
    const weights::StateDict::Scope own =
        scope.Sub(absl::StrCat("stages.", stage));
    if (stage > 0) {
      downsamples_.emplace_back(
          own.Sub("downsample"), config.mamba_out, stage,
          static_cast<int>(model::MapSide(image_size, stage - 1)),
          implementation);
    }
    std::vector<GatedBlock>& blocks = stages_.emplace_back();
    for (int i = 0; i < config.depths[stage]; ++i) {
      blocks.emplace_back(own.Sub(absl::StrCat("blocks.", i)), config.mamba_out,
                          stage, implementation);
    }
  }
}

layers::Features MambaOutBackbone::Forward(const ops::ImageBatch& images,
                                           int64_t /*fold_rows*/) const {
  layers::Features features;
  at::Tensor map = stem_.Forward(images);
  for (size_t stage = 0; stage < stages_.size(); ++stage) {
    if (stage > 0) map = downsamples_[stage - 1].Forward(map);
    const int64_t height = map.size(2), width = map.size(3);
    const ops::WindowGrid whole = {height, width, height, width};
    // The residual stream uses the map's memory if the types allow this.
    ops::Residual x(windows_->Partition(map.permute({0, 2, 3, 1}), whole,
                                        ops::WindowEnds::kNone));
    for (const GatedBlock& block : stages_[stage]) {
      block.Forward(x, height, width);
    }
    map = windows_->ReverseToMap(x.Sum(), whole);
    if (maps_ == FeatureMaps::kAll || stage + 1 == stages_.size()) {
      features.push_back(map);
    }
  }
  return features;
}

std::vector<int64_t> MambaOutBackbone::Sequences(int64_t images, int64_t,
                                                 int64_t) const {
  return {images};
}

}  // namespace sfmamba::backbones
