#include "model/heads/classification_head.h"

#include <optional>

#include "ATen/ops/cat.h"

namespace sfmamba::heads {
namespace {

std::vector<float> ToVector(const at::Tensor& row) {
  const at::Tensor values = row.contiguous();
  const float* data = values.const_data_ptr<float>();
  return std::vector<float>(data, data + values.numel());
}

}  // namespace

ClassificationHead::ClassificationHead(
    const model::ModelConfig& config, const weights::StateDict::Scope& scope,
    const ops::Implementation& implementation)
    : num_classes_(config.num_classes),
      head_({layers::Linear::Take(scope.Sub("head"),
                                  config.backbone.feature_width(),
                                  config.num_classes, true),
             {},
             ops::Epilogue::kNone,
             /*is_output=*/true},
            implementation) {
  std::optional<ops::BatchNorm> norm;  // Vim's feature is normalised already.
  if (config.backbone.architecture == model::Architecture::kHybrid) {
    norm = ops::BatchNorm::Take(scope.Sub("norm"),
                                config.backbone.feature_width(), 1e-5);
  }
  pooling_ = implementation.MakePooling({norm});
}

at::Tensor ClassificationHead::Answers(const layers::Features& features) const {
  const at::Tensor embedding = pooling_->Forward(features.back());
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
