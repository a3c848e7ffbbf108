#include "model/heads/classification_head.h"

#include "ATen/ops/addcmul.h"
#include "ATen/ops/batch_norm.h"
#include "ATen/ops/cat.h"

namespace sfmamba::heads {
namespace {

std::vector<float> ToVector(const at::Tensor& row) {
  const at::Tensor values = row.contiguous();
  const float* data = values.const_data_ptr<float>();
  return std::vector<float>(data, data + values.numel());
}

}  // namespace

ClassificationHead::ClassificationHead(const model::ModelConfig& config,
                                       const weights::StateDict::Scope& scope,
                                       const layers::LayerOptions& options)
    : fuse_(options.fuse),
      num_classes_(config.num_classes),
      head_(layers::Linear::Take(scope.Sub("head"),
                                 config.backbone.feature_width(),
                                 config.num_classes, true),
            {}, {options.fuse, model::Precision::kFloat32}) {
  if (config.backbone.architecture == model::Architecture::kHybrid) {
    norm_ = layers::BatchNorm::Take(scope.Sub("norm"),
                                    config.backbone.feature_width(), 1e-5);
    affine_ = layers::ToAffine(*norm_);
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

at::Tensor ClassificationHead::Answers(const layers::Features& features) const {
  const at::Tensor embedding = Embed(features.back().to(at::kFloat));
  return at::cat({head_.Forward(embedding), embedding}, 1);
}

std::vector<model::Result> ClassificationHead::ToResults(
    const at::Tensor& answers) const {
  std::vector<model::Result> results;
  for (int64_t i = 0; i < answers.size(0); ++i) {
    const at::Tensor row = answers[i];
    results.push_back(
        model::Classification{ToVector(row.slice(0, 0, num_classes_)),
                              ToVector(row.slice(0, num_classes_))});
  }
  return results;
}

std::vector<model::Result> ClassificationHead::Forward(
    const layers::Features& features, absl::Span<const ImageInfo>) const {
  return ToResults(Answers(features).cpu());
}

}  // namespace sfmamba::heads
