#include "model/backbones/vmamba_backbone.h"

#include "ATen/TensorOperators.h"
#include "absl/strings/str_cat.h"
#include "model/stage_geometry.h"

namespace sfmamba::backbones {
namespace {

constexpr float kEps = 1e-5f;
constexpr int kDirections = 4;

layers::Convolution TakeDepthwise(const weights::StateDict::Scope& scope,
                                  int width, int size,
                                  const ops::Implementation& implementation) {
  layers::Convolution::Shape shape{width, width, /*stride=*/1, size};
  shape.groups = width;
  return layers::Convolution(
      shape, layers::Convolution::Take(scope, shape, /*bias=*/false),
      std::nullopt, ops::Activation::kNone, implementation);
}

ops::CrossScanParameters TakeScan(const weights::StateDict::Scope& scope,
                                  int width, int inner) {
  const int rank = (width + 15) / 16;
  ops::CrossScanParameters scan;
  scan.x_proj = scope.Take("x_proj_weight", {kDirections, rank + 2, inner});
  scan.dt_proj = scope.Take("dt_projs_weight", {kDirections, inner, rank});
  scan.bias = scope.Take("dt_projs_bias", {kDirections, inner});
  // A_logs has one row for each channel of each direction.
  scan.A = -scope.Take("A_logs", {kDirections * inner, 1})
                .exp()
                .view({kDirections, inner});
  scan.D = scope.Take("Ds", {kDirections * inner}).view({kDirections, inner});
  scan.norm = {scope.Take("out_norm.weight", {inner}),
               scope.Take("out_norm.bias", {inner}), kEps};
  return scan;
}

}  // namespace

CrossScanMixer::CrossScanMixer(const weights::StateDict::Scope& scope,
                               int width, int inner, int size,
                               const ops::Implementation& implementation)
    : implementation_(implementation),
      in_({layers::Linear::Take(scope.Sub("in_proj"), width, inner,
                                /*bias=*/false)},
          implementation),
      convolution_(
          TakeDepthwise(scope.Sub("conv2d"), inner, size, implementation)),
      scan_(implementation.MakeCrossScan(TakeScan(scope, width, inner))),
      out_({layers::Linear::Take(scope.Sub("out_proj"), inner, width,
                                 /*bias=*/false)},
           implementation) {}

void CrossScanMixer::AddTo(ops::Residual& residual, const at::Tensor& x,
                           int64_t height, int64_t width) const {
  at::Tensor map =
      convolution_.Forward(in_.Forward(x)
                               .view({x.size(0), height, width, -1})
                               .permute({0, 3, 1, 2}));
  implementation_.Activate(map, model::Nonlinearity::kSilu);
  const at::Tensor scanned =
      scan_->Forward(map.permute({0, 2, 3, 1}).contiguous());
  out_.AddTo(residual, scanned.flatten(1, 2));
}

VMambaBlock::VMambaBlock(const weights::StateDict::Scope& scope,
                         const model::BackboneConfig& config, int stage,
                         int size, const ops::Implementation& implementation)
    : norm_(scope.Sub("norm"), config.width(stage), implementation, kEps),
      mixer_(scope.Sub("op"), config.width(stage),
             config.ssm_ratio * config.width(stage), size, implementation),
      norm2_(scope.Sub("norm2"), config.width(stage), implementation, kEps),
      mlp_(scope.Sub("mlp"), config.width(stage), /*gamma=*/{},
           implementation) {}

void VMambaBlock::Forward(ops::Residual& x, int64_t height,
                          int64_t width) const {
  const int64_t length = height * width;
  mixer_.AddTo(x, norm_.Forward(x, length, /*swap=*/false), height, width);
  mlp_.AddTo(x, norm2_.Forward(x, length, /*swap=*/false));
}

VMambaBackbone::VMambaBackbone(const model::BackboneConfig& config,
                               int image_size, FeatureMaps maps,
                               const weights::StateDict::Scope& scope,
                               const ops::Implementation& implementation)
    : maps_(maps),
      stem_(scope.Sub("patch_embed"), {"0", "2", "5", "7"}, config.width(0),
            kEps, model::Nonlinearity::kGelu, image_size, implementation),
      windows_(implementation.MakeWindows({})) {
  for (int stage = 0; stage < 4; ++stage) {
    const weights::StateDict::Scope own =
        scope.Sub(absl::StrCat("layers.", stage));
    const int size = static_cast<int>(model::MapSide(image_size, stage));
    std::vector<VMambaBlock>& blocks = stages_.emplace_back();
    for (int i = 0; i < config.depths[stage]; ++i) {
      blocks.emplace_back(own.Sub(absl::StrCat("blocks.", i)), config, stage,
                          size, implementation);
    }
    if (config.output_norms) {
      output_norms_.emplace_back(scope.Sub(absl::StrCat("outnorm", stage)),
                                 config.width(stage), implementation, kEps);
    }
    if (stage == 3) break;
    downsamples_.push_back(
        {TakeHalving(own.Sub("downsample.1"), config.width(stage),
                     config.width(stage + 1), size, implementation),
         layers::LayerNorm(own.Sub("downsample.3"), config.width(stage + 1),
                           implementation, kEps)});
  }
}

layers::Features VMambaBackbone::Forward(const ops::ImageBatch& images,
                                         int64_t /*fold_rows*/) const {
  layers::Features features;
  at::Tensor map = stem_.Forward(images);
  for (size_t stage = 0; stage < stages_.size(); ++stage) {
    const int64_t height = map.size(2), width = map.size(3);
    const ops::WindowGrid whole = {height, width, height, width};
    // The residual stream uses the map's memory if the types allow this.
    ops::Residual x(windows_->Partition(map.permute({0, 2, 3, 1}), whole,
                                        ops::WindowEnds::kNone));
    for (const VMambaBlock& block : stages_[stage]) {
      block.Forward(x, height, width);
    }
    map = windows_->ReverseToMap(x.Sum(), whole);
    if (maps_ == FeatureMaps::kAll || stage + 1 == stages_.size()) {
      features.push_back(
          output_norms_.empty() ? map : output_norms_[stage].ForwardMap(map));
    }
    if (stage < downsamples_.size()) {
      const Downsample& down = downsamples_[stage];
      map = down.norm.ForwardMap(down.convolution.Forward(map));
    }
  }
  return features;
}

std::vector<int64_t> VMambaBackbone::Sequences(int64_t images, int64_t,
                                               int64_t) const {
  return {images};
}

}  // namespace sfmamba::backbones
