#include "model/heads/classification_head.h"

#include <optional>

#include "ATen/ops/cat.h"
#include "model/stage_geometry.h"

namespace sfmamba::heads {
namespace {

constexpr double kNeckEps = 1e-3;  // EfficientNet-Lite0's.

std::vector<float> ToVector(const at::Tensor& row) {
  const at::Tensor values = row.contiguous();
  const float* data = values.const_data_ptr<float>();
  return std::vector<float>(data, data + values.numel());
}

// The layers of ClassifierConfig behind `norm`, as one: nothing stands between
// them but products.
layers::Convolution TakeNeck(const model::ModelConfig& config,
                             const ops::BatchNorm& norm,
                             const weights::StateDict::Scope& scope,
                             const ops::Implementation& implementation) {
  using layers::Convolution;
  Convolution::Shape shape;
  shape.in = config.backbone.feature_width();
  shape.out = config.classifier.channels;
  shape.kernel = 1;
  const ops::Weights project =
      Convolution::Take(scope.Sub("project"), shape, /*bias=*/true);
  shape.in = config.classifier.channels;
  shape.out = config.classifier.features;
  const ops::Weights expand =
      Convolution::Take(scope.Sub("expand.conv"), shape, /*bias=*/false);
  shape.in = config.backbone.feature_width();
  shape.input_size = static_cast<int>(model::MapSide(config.image_size, 3));
  return Convolution(
      shape, ops::ComposePointwise(norm, project, expand),
      ops::BatchNorm::Take(scope.Sub("expand.bn"), shape.out, kNeckEps),
      ops::Activation::kRelu6, implementation);
}

}  // namespace

ClassificationHead::ClassificationHead(
    const model::ModelConfig& config, const weights::StateDict::Scope& scope,
    const ops::Implementation& implementation)
    : num_classes_(config.num_classes),
      head_({layers::Linear::Take(scope.Sub("head"), config.embedding_width(),
                                  config.num_classes, true),
             {},
             ops::Epilogue::kNone,
             /*is_output=*/true},
            implementation) {
  std::optional<ops::BatchNorm> norm;  // Vim's feature is normalised already.
  if (config.backbone.architecture == model::Architecture::kHybrid) {
    norm = ops::BatchNorm::Take(scope.Sub("norm"),
                                config.backbone.feature_width(), 1e-5);
    if (config.classifier.features > 0) {
      neck_ = TakeNeck(config, *norm, scope.Sub("neck"), implementation);
      norm.reset();
    }
  }
  pooling_ = implementation.MakePooling({norm});
}

at::Tensor ClassificationHead::Answers(const layers::Features& features) const {
  // Logits and embeddings are one tensor, so that one copy brings both from a
  // device.
  const at::Tensor& map = features.back();
  const at::Tensor embedding =
      pooling_->Forward(neck_.has_value() ? neck_->Forward(map) : map);
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
