#include "model/backbones/hybrid_backbone.h"

#include <utility>

#include "ATen/ops/cat.h"
#include "absl/strings/str_cat.h"
#include "model/stage_geometry.h"

namespace sfmamba::backbones {

HybridBackbone::HybridBackbone(const model::BackboneConfig& config,
                               int image_size, FeatureMaps maps,
                               const weights::StateDict::Scope& scope,
                               const ops::Implementation& implementation)
    : maps_(maps), implementation_(implementation) {
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
    // No downsampling follows the last stage (3). The stages in a LiteTrunk do
    // their own downsampling.
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
    // The trunk's last map is not a feature. It is the input of the first token
    // stage.
    at::Tensor last = std::move(maps.back());
    maps.pop_back();
    for (const at::Tensor& map : maps) {
      if (maps_ == FeatureMaps::kAll) Add(map, features);
    }
    return last;
  }
  at::Tensor x = patch_embed_->Forward(images);
  for (int stage = 0; stage < 2; ++stage) {
    x = conv_stages_[stage].Forward(x);
    if (maps_ == FeatureMaps::kAll) Add(x, features);
    x = downsamples_[stage].Forward(x);
  }
  return x;
}

at::Tensor HybridBackbone::ForwardParts(const ops::ImageBatch& images,
                                        layers::Features* features) const {
  const at::Tensor& values = images.values();
  if (!values.defined()) return ForwardConvolutions(images, features);
  const int64_t count = values.size(0);
  // The results of a part are stored at the index of the part's first image. A
  // part consists of one image or of all images.
  std::vector<at::Tensor> results(count);
  std::vector<layers::Features> maps(count);
  implementation_.ForEachPart(
      count, /*size=*/1, [&](int64_t first, int64_t part) {
        results[first] = ForwardConvolutions(
            part == count ? images
                          : ops::ImageBatch(values.narrow(0, first, part)),
            &maps[first]);
      });
  const bool is_one_part = count == 1 || !results[1].defined();
  if (is_one_part) {
    *features = std::move(maps[0]);
    return results[0];
  }
  for (size_t stage = 0; stage < maps[0].size(); ++stage) {
    std::vector<at::Tensor> of_stage;
    for (const layers::Features& own : maps) of_stage.push_back(own[stage]);
    features->push_back(at::cat(of_stage, 0));
  }
  return at::cat(results, 0);
}

layers::Features HybridBackbone::Forward(const ops::ImageBatch& images,
                                         int64_t fold_rows) const {
  layers::Features features;
  at::Tensor x = ForwardParts(images, &features);
  for (const TokenStage& tokens : token_stages_) {
    // The input of the first token stage is downsampled already.
    if (&tokens != &token_stages_.front()) x = downsamples_.back().Forward(x);
    x = tokens.Forward(
        x, fold_rows > 0 ? fold_rows
                         : tokens.Sequences(x.size(0), x.size(2), x.size(3)));
    if (maps_ == FeatureMaps::kAll || &tokens == &token_stages_.back()) {
      Add(x, &features);
    }
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
