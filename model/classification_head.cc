#include "model/classification_head.h"

#include "ATen/ops/addcmul.h"
#include "ATen/ops/batch_norm.h"

namespace sfmamba {
namespace {

std::vector<float> ToVector(const at::Tensor& row) {
  const at::Tensor values = row.contiguous();
  const float* data = values.const_data_ptr<float>();
  return std::vector<float>(data, data + values.numel());
}

}  // namespace

ClassificationHead::ClassificationHead(const ModelConfig& config,
                                       const StateDict::Scope& scope,
                                       const LayerOptions& options)
    : fuse_(options.fuse),
      head_(Linear::Take(scope.Sub("head"), config.backbone.feature_width(),
                         config.num_classes, true),
            {}, {options.fuse, Precision::kFloat32}) {
  if (config.backbone.architecture == Architecture::kHybrid) {
    norm_ = BatchNorm::Take(scope.Sub("norm"), config.backbone.feature_width(),
                            1e-5);
    affine_ = ToAffine(*norm_);
  }
}

at::Tensor ClassificationHead::Embed(const at::Tensor& map) const {
  if (!norm_.has_value()) return map.mean({2, 3});
  if (!fuse_) {
    return at::batch_norm(map, norm_->weight, norm_->bias, norm_->mean,
                          norm_->var, /*training=*/false, /*momentum=*/0,
                          norm_->eps, /*cudnn_enabled=*/false)
        .mean({2, 3});
  }
  return at::addcmul(affine_.shift, map.mean({2, 3}), affine_.scale);
}

std::vector<Result> ClassificationHead::Forward(
    const Features& features, absl::Span<const ImageInfo>) const {
  const at::Tensor embedding = Embed(features.back().to(at::kFloat));
  const at::Tensor logits = head_.forward(embedding);
  std::vector<Result> results;
  for (int64_t i = 0; i < logits.size(0); ++i) {
    results.push_back(
        Classification{ToVector(logits[i]), ToVector(embedding[i])});
  }
  return results;
}

}  // namespace sfmamba
