#include "model/backbones/hybrid_backbone.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "model/stage_geometry.h"

namespace sfmamba::backbones {

HybridBackbone::HybridBackbone(const model::BackboneConfig& config,
                               int image_size,
                               const weights::StateDict::Scope& scope,
                               const ops::Implementation& implementation) {
  const int first = config.first_stage();
  if (first > 0) {
    trunk_.emplace(scope.Sub("trunk"), /*stride=*/4 << first, image_size,
                   implementation);
  } else {
    patch_embed_.emplace(scope.Sub("patch_embed"), config.in_dim, config.dim,
                         image_size, implementation);
  }
  for (int stage = 0; stage < 4; ++stage) {
    const weights::StateDict::Scope level =
        scope.Sub(absl::StrCat("levels.", stage));
    const int size = static_cast<int>(model::MapSide(image_size, stage));
    const bool in_trunk = stage < first;
    if (!in_trunk && stage >= 2) {
      token_stages_.emplace_back(level, stage, config, implementation);
    } else if (!in_trunk) {
      conv_stages_.emplace_back(level, stage, size, config, implementation);
    }
    if (config.output_norms) {
      output_norms_.emplace_back(scope.Sub(absl::StrCat("outnorm", stage)),
                                 config.width(stage), implementation);
    }
    if (stage == 3 || in_trunk) continue;
    const layers::Convolution::Shape shape{config.width(stage),
                                           config.width(stage + 1),
                                           /*stride=*/2, size};
    downsamples_.emplace_back(
        shape,
        layers::Convolution::Take(level.Sub("downsample.reduction.0"), shape,
                                  false),
        std::nullopt, ops::Activation::kNone, implementation);
  }
}

void HybridBackbone::Add(const at::Tensor& map,
                         layers::Features* features) const {
  features->push_back(output_norms_.empty()
                          ? map
                          : output_norms_[features->size()].ForwardMap(map));
}

at::Tensor HybridBackbone::ForwardConvolutions(
    const ops::ImageBatch& images, layers::Features* features) const {
  if (trunk_.has_value()) {
    std::vector<at::Tensor> maps = trunk_->Forward(images);
    at::Tensor last = std::move(maps.back());
    maps.pop_back();
    for (const at::Tensor& map : maps) Add(map, features);
    return last;
  }
  at::Tensor x = patch_embed_->Forward(images);
  for (int stage = 0; stage < 2; ++stage) {
    x = conv_stages_[stage].Forward(x);
    Add(x, features);
    x = downsamples_[stage].Forward(x);
  }
  return x;
}

layers::Features HybridBackbone::Forward(const ops::ImageBatch& images,
                                         int64_t fold_rows) const {
  layers::Features features;
  at::Tensor x = ForwardConvolutions(images, &features);
  for (const TokenStage& tokens : token_stages_) {
    if (&tokens != &token_stages_.front()) x = downsamples_.back().Forward(x);
    x = tokens.Forward(
        x, fold_rows > 0 ? fold_rows
                         : tokens.Sequences(x.size(0), x.size(2), x.size(3)));
    Add(x, &features);
  }
  return features;
}

std::vector<int64_t> HybridBackbone::Sequences(int64_t images, int64_t height,
                                               int64_t width) const {
  std::vector<int64_t> sequences;
  int stage = 4 - static_cast<int>(token_stages_.size());
  for (const TokenStage& tokens : token_stages_) {
    sequences.push_back(tokens.Sequences(images, model::MapSide(height, stage),
                                         model::MapSide(width, stage)));
    ++stage;
  }
  return sequences;
}

}  // namespace sfmamba::backbones
