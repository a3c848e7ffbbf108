#include "model/heads/classification_head.h"

#include <optional>
#include <utility>
#include <variant>

#include "ATen/TensorOperators.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/softmax.h"
#include "absl/strings/str_cat.h"
#include "model/stage_geometry.h"

namespace sfmamba::heads {
namespace {

constexpr double kNeckEps = 1e-3;  // The eps of EfficientNet-Lite0.

std::vector<float> ToVector(const at::Tensor& row) {
  const at::Tensor values = row.contiguous();
  const float* data = values.const_data_ptr<float>();
  return std::vector<float>(data, data + values.numel());
}

// Returns the class with the greatest logit. Considers only `classes`, or all
// classes if it is empty. If logits are equal, returns the smaller class
// number.
int BestClass(const std::vector<float>& logits,
              const std::vector<int>& classes) {
  int best = classes.empty() ? 0 : classes[0];
  const auto consider = [&](int id) {
    if (logits[id] > logits[best] ||
        (logits[id] == logits[best] && id < best)) {
      best = id;
    }
  };
  for (const int id : classes) consider(id);
  if (classes.empty()) {
    for (size_t id = 0; id < logits.size(); ++id) consider(id);
  }
  return best;
}

// Reads the weights of ClassifierConfig's two convolutions from `scope`. Merges
// both convolutions and the BatchNorm `norm` before them into one convolution.
// This is possible because there is no activation between the three layers.
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

// Reads the four linear classifiers of EfficientViM from `scope` and merges
// them into one linear layer. Each classifier reads a different part of the
// features. The model's logits are the weighted sum of the classifiers' logits.
// The four weights of this sum are the softmax of a tensor in the checkpoint. A
// distilled model has four more classifiers with a weighted sum of their own.
// Its logits are the mean of the two sums.
ops::Weights TakeWeightedHeads(const model::ModelConfig& config,
                               const weights::StateDict::Scope& scope) {
  const model::EfficientVimConfig& own = config.backbone.efficient_vim;
  const int widths[] = {own.widths[0], own.widths[1], own.widths[2],
                        own.widths[2]};
  std::vector<at::Tensor> blocks(4);
  at::Tensor bias;
  const auto add = [](const at::Tensor& value, at::Tensor* sum) {
    *sum = sum->defined() ? *sum + value : value;
  };
  for (const char* suffix : {"", "_dist"}) {
    if (*suffix != '\0' && !own.distilled) break;
    const at::Tensor parts =
        at::softmax(
            scope.Take(absl::StrCat("weights", suffix), {4}).to(at::kDouble),
            0) /
        (own.distilled ? 2 : 1);
    for (int i = 0; i < 4; ++i) {
      const ops::Weights head =
          layers::Linear::Take(scope.Sub(absl::StrCat("heads", suffix, ".", i)),
                               widths[i], config.num_classes, /*bias=*/true);
      add(head.weight.to(at::kDouble) * parts[i], &blocks[i]);
      add(head.bias.to(at::kDouble) * parts[i], &bias);
    }
  }
  return {at::cat(blocks, 1).to(at::kFloat), bias.to(at::kFloat)};
}

ops::Weights TakeHead(const model::ModelConfig& config,
                      const weights::StateDict::Scope& scope) {
  const auto take = [&](const char* name) {
    return layers::Linear::Take(scope.Sub(name), config.embedding_width(),
                                config.num_classes, /*bias=*/true);
  };
  switch (config.backbone.architecture) {
    case model::Architecture::kEfficientVim:
      return TakeWeightedHeads(config, scope);
    case model::Architecture::kMambaOut:
      return take("head.fc");
    case model::Architecture::kVMamba:
      return take("classifier.head");
    case model::Architecture::kHybrid:
    case model::Architecture::kVim:
      break;
  }
  return take("head");
}

}  // namespace

ClassificationHead::ClassificationHead(
    const model::ModelConfig& config, const weights::StateDict::Scope& scope,
    const ops::Implementation& implementation)
    : num_classes_(config.num_classes),
      head_({TakeHead(config, scope),
             {},
             ops::Epilogue::kNone,
             /*is_output=*/true},
            implementation) {
  std::optional<ops::BatchNorm> norm;  // Vim's feature is already normalised.
  if (config.backbone.architecture == model::Architecture::kHybrid) {
    norm = ops::BatchNorm::Take(scope.Sub("norm"),
                                config.backbone.feature_width(), 1e-5);
    if (config.classifier.features > 0) {
      neck_ = TakeNeck(config, *norm, scope.Sub("neck"), implementation);
      norm.reset();
    }
  }
  if (config.backbone.architecture == model::Architecture::kMambaOut) {
    mlp_.emplace(config, scope.Sub("head"), implementation);
  }
  if (config.backbone.architecture == model::Architecture::kVMamba) {
    map_norm_.emplace(scope.Sub("classifier.norm"),
                      config.backbone.feature_width(), implementation);
  }
  pooling_ = implementation.MakePooling({norm});
}

at::Tensor ClassificationHead::LastMap(const layers::Features& features) const {
  const at::Tensor& map = features.back();
  if (map_norm_.has_value()) return map_norm_->ForwardMap(map);
  return neck_.has_value() ? neck_->Forward(map) : map;
}

at::Tensor ClassificationHead::AnswersOf(const at::Tensor& map) const {
  // Returns logits and embeddings as one tensor, so that one copy from the
  // device is enough.
  at::Tensor embedding = pooling_->Forward(map);
  if (mlp_.has_value()) embedding = mlp_->Forward(embedding);
  return at::cat({head_.Forward(embedding), embedding}, 1);
}

at::Tensor ClassificationHead::Answers(const layers::Features& features) const {
  return AnswersOf(LastMap(features));
}

std::vector<model::Result> ClassificationHead::ToResults(
    const at::Tensor& answers, absl::Span<const ImageInfo> images) const {
  std::vector<model::Result> results;
  results.reserve(images.size());
  const float* row = answers.const_data_ptr<float>();
  for (const ImageInfo& image : images) {
    const float* const end = row + answers.size(1);
    model::Classification result;
    result.logits.assign(row, row + num_classes_);
    if (model::OptionsOf<model::ClassificationOptions>(image.options)
            .embedding) {
      result.embedding.assign(row + num_classes_, end);
    }
    results.push_back(std::move(result));
    row = end;
  }
  return results;
}

void ClassificationHead::AddHeatMap(const at::Tensor& map,
                                    const std::vector<int>& classes,
                                    model::Classification* result) const {
  // Norm, mean and the last layer are linear. Therefore the image's logit is
  // the mean of the logits that each position would have alone.
  const at::Tensor positions =
      map.permute({1, 2, 0}).reshape({-1, map.size(0), 1, 1});
  const at::Tensor logits = head_.Forward(pooling_->Forward(positions));
  model::HeatMap& heat_map = result->heat_map;
  heat_map.class_id = BestClass(result->logits, classes);
  heat_map.height = static_cast<int>(map.size(1));
  heat_map.width = static_cast<int>(map.size(2));
  heat_map.values = ToVector(logits.select(1, heat_map.class_id).cpu());
}

std::vector<model::Result> ClassificationHead::Forward(
    const layers::Features& features,
    absl::Span<const ImageInfo> images) const {
  const at::Tensor map = LastMap(features);
  std::vector<model::Result> results =
      ToResults(AnswersOf(map).cpu().contiguous(), images);
  for (size_t i = 0; i < images.size(); ++i) {
    const auto options =
        model::OptionsOf<model::ClassificationOptions>(images[i].options);
    if (!options.heat_map) continue;
    AddHeatMap(map[i], options.classes,
               &std::get<model::Classification>(results[i]));
  }
  return results;
}

}  // namespace sfmamba::heads
