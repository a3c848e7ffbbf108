#include "tests/model/testing.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "ATen/TensorOperators.h"
#include "c10/core/InferenceMode.h"
#include "model/backbones/backbone.h"
#include "model/engine/make_vision_model.h"
#include "model/heads/head.h"
#include "model/weights/state_dict.h"
#include "tests/testing/deterministic.h"
#include "tests/testing/run_model.h"

namespace sfmamba::model {
namespace {

void DieUnlessOk(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

layers::Features ForwardBackbone(const ModelConfig& config,
                                 const at::Tensor& images,
                                 const ops::Implementation& implementation,
                                 weights::StateDict& weights) {
  const auto backbone = backbones::MakeBackbone(
      config.backbone, config.image_size, backbones::FeatureMaps::kAll,
      weights.root(), implementation);
  return backbone->Forward(images, /*fold_rows=*/0);
}

std::vector<float> Concatenated(const std::vector<Result>& results) {
  std::vector<float> logits;
  for (const Result& result : results) {
    const auto& own = std::get<Classification>(result).logits;
    logits.insert(logits.end(), own.begin(), own.end());
  }
  return logits;
}

}  // namespace

ModelConfig SmallModel() {
  ModelConfig config;
  config.variant = "custom";
  BackboneConfig& backbone = config.backbone;
  backbone.dim = 16;
  backbone.in_dim = 8;
  backbone.depths = {1, 1, 5, 3};
  backbone.num_heads = {1, 2, 4, 8};
  backbone.windows = {4, 2};
  backbone.layer_scale = true;
  config.num_classes = 10;
  config.image_size = 96;
  return config;
}

ModelConfig LiteModel() {
  ModelConfig config;
  config.variant = "custom";
  BackboneConfig& backbone = config.backbone;
  backbone.stem = Stem::kEfficientNetLite0;
  backbone.dim = 28;
  backbone.in_dim = 0;
  backbone.depths = {0, 0, 4, 2};
  backbone.num_heads = {0, 0, 4, 8};
  backbone.windows = {10, 5};
  config.num_classes = 20;
  config.image_size = 160;
  return config;
}

ModelConfig LiteStride32Model() {
  ModelConfig config = LiteModel();
  BackboneConfig& backbone = config.backbone;
  backbone.stem = Stem::kEfficientNetLite0Stride32;
  backbone.dim = 24;
  backbone.depths = {0, 0, 0, 3};
  backbone.num_heads = {0, 0, 0, 6};
  config.classifier = {/*channels=*/320, /*features=*/1280};
  return config;
}

std::unique_ptr<VisionModel> MakeModel(const ModelConfig& config,
                                       const ModelOptions& options) {
  weights::StateDict weights(DeterministicParameter);
  auto model = engine::MakeVisionModel(config, weights, options);
  DieUnlessOk(model.status());
  return *std::move(model);
}

PredictionOptions AskForAll(VisionTask task) {
  DetectionOptions detection;
  detection.masks = true;
  SegmentationOptions segmentation;
  segmentation.confidence = true;
  switch (task) {
    case VisionTask::kDetection:
      return detection;
    case VisionTask::kSegmentation:
      return segmentation;
    case VisionTask::kClassification:
      break;
  }
  return {};
}

std::vector<at::Tensor> StageMaps(const ModelConfig& config,
                                  const at::Tensor& images,
                                  const ops::Implementation& implementation) {
  const c10::InferenceMode guard;
  weights::StateDict weights(DeterministicParameter);
  std::vector<at::Tensor> maps =
      ForwardBackbone(config, images, implementation, weights);
  for (at::Tensor& map : maps) map = map.to(at::kFloat);
  return maps;
}

std::vector<float> LogitsOf(const ModelConfig& config, const at::Tensor& images,
                            const ops::Implementation& implementation) {
  const c10::InferenceMode guard;
  weights::StateDict weights(DeterministicParameter);
  const auto head = heads::MakeHead(config, weights.root(), implementation);
  return Concatenated(
      head->Forward(ForwardBackbone(config, images, implementation, weights),
                    std::vector<heads::ImageInfo>(images.size(0))));
}

absl::StatusOr<std::vector<Result>> RunModel(ExecutionContext& context,
                                             const at::Tensor& images) {
  std::vector<ModelInput> inputs;
  for (int64_t i = 0; i < images.size(0); ++i) {
    ModelInput input;
    input.height = images.size(2);
    input.width = images.size(3);
    input.values = images[i].const_data_ptr<float>();
    inputs.push_back(input);
  }
  return RunBatch(context, inputs);
}

absl::StatusOr<std::vector<Result>> RunModel(VisionModel& model,
                                             const at::Tensor& images) {
  return RunModel(*MakeContext(model), images);
}

std::vector<float> Logits(ExecutionContext& context, const at::Tensor& images) {
  const auto results = RunModel(context, images);
  DieUnlessOk(results.status());
  return Concatenated(*results);
}

std::vector<float> Logits(VisionModel& model, const at::Tensor& images) {
  return Logits(*MakeContext(model), images);
}

double LargestDifference(const std::vector<float>& a,
                         const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(double{a[i]} - b[i]);
    if (!(difference <= largest)) largest = difference;  // NaN shows too.
  }
  return largest;
}

double LargestDifference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

}  // namespace sfmamba::model
