#include "model/heads/classification_head.h"

#include "ATen/ops/addcmul.h"
#include "ATen/ops/batch_norm.h"
#include "ATen/ops/cat.h"

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
      num_classes_(config.num_classes),
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

at::Tensor ClassificationHead::Answers(const Features& features) const {
  const at::Tensor embedding = Embed(features.back().to(at::kFloat));
  return at::cat({head_.forward(embedding), embedding}, 1);
}

std::vector<Result> ClassificationHead::ToResults(
    const at::Tensor& answers) const {
  std::vector<Result> results;
  for (int64_t i = 0; i < answers.size(0); ++i) {
    const at::Tensor row = answers[i];
    results.push_back(Classification{ToVector(row.slice(0, 0, num_classes_)),
                                     ToVector(row.slice(0, num_classes_))});
  }
  return results;
}

std::vector<Result> ClassificationHead::Forward(
    const Features& features, absl::Span<const ImageInfo>) const {
  return ToResults(Answers(features).cpu());
}

}  // namespace sfmamba
