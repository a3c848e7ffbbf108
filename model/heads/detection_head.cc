#include "model/heads/detection_head.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "ATen/TensorOperators.h"
#include "ATen/ops/aminmax.h"
#include "ATen/ops/sigmoid.h"
#include "ATen/ops/softmax.h"
#include "ATen/ops/tensor.h"
#include "model/heads/box_coder.h"
#include "model/ops/cpu/answer_ops.h"

namespace sfmamba::heads {
namespace {

bool IsFinite(const at::Tensor& x) {
  // If any value of x is NaN, at::aminmax() returns NaN twice.
  const auto [least, largest] = at::aminmax(x);
  return std::isfinite(least.item<float>()) &&
         std::isfinite(largest.item<float>());
}

bool AreFinite(const std::vector<at::Tensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), IsFinite);
}

model::Detections NotFinite() {
  model::Detections detections;
  detections.finite = false;
  return detections;
}

// Returns by how much the picture was scaled to the network's input along x and
// y. The two factors differ slightly, because sides are whole numbers of
// pixels.
std::array<double, 2> Scale(const ImageInfo& image) {
  return {static_cast<double>(image.width) / image.original_width,
          static_cast<double>(image.height) / image.original_height};
}

// Returns [x, y, x, y], by which boxes [n, 4] can be multiplied.
at::Tensor PerCoordinate(double x, double y) {
  return at::tensor({x, y, x, y}, at::kFloat);
}

// The next two functions give the same boxes, but round differently. The
// reference divides by the factors if the model has masks. If the model has
// none, the reference multiplies by their inverses.
at::Tensor DivideByScale(const at::Tensor& boxes, const ImageInfo& image) {
  const auto [x, y] = Scale(image);
  return boxes / PerCoordinate(x, y);
}
at::Tensor MultiplyByInverseScale(const at::Tensor& boxes,
                                  const ImageInfo& image) {
  const auto [x, y] = Scale(image);
  return (boxes.view({-1, 4}) * PerCoordinate(1 / x, 1 / y))
      .view(boxes.sizes());
}

MulticlassNmsOptions NmsOptions(const model::DetectorConfig& config,
                                const model::DetectionOptions& asked) {
  return {
      asked.score_threshold.value_or(config.score_threshold),
      asked.nms_iou_threshold.value_or(config.nms_iou_threshold),
      asked.max_detections > 0 ? asked.max_detections : config.max_detections,
      asked.classes, asked.class_agnostic_nms};
}

// Returns the mask probabilities [n, S, S], averaged over the stages.
at::Tensor MeanMask(const std::vector<at::Tensor>& logits) {
  at::Tensor sum = at::sigmoid(logits.front());
  for (size_t i = 1; i < logits.size(); ++i) sum += at::sigmoid(logits[i]);
  return sum / static_cast<double>(logits.size());
}

std::vector<model::Detection> ToDetections(const at::Tensor& boxes,
                                           const ScoredBoxes& kept) {
  std::vector<model::Detection> detections(boxes.size(0));
  for (size_t i = 0; i < detections.size(); ++i) {
    detections[i].box = BoxAt(boxes, i);
    detections[i].class_id = kept.labels.const_data_ptr<int64_t>()[i];
    detections[i].score = kept.scores.const_data_ptr<float>()[i];
  }
  return detections;
}

}  // namespace

DetectionHead::DetectionHead(const model::DetectorConfig& config,
                             int num_classes,
                             const std::vector<int>& in_channels,
                             const weights::StateDict::Scope& scope,
                             const ops::Implementation& implementation)
    : config_(config),
      neck_(in_channels, config.channels, scope.Sub("neck"), implementation),
      rpn_(config, scope.Sub("rpn_head"), implementation),
      roi_(config, num_classes, scope.Sub("roi_head"), implementation) {}

std::vector<model::Result> DetectionHead::Forward(
    const layers::Features& features,
    absl::Span<const ImageInfo> images) const {
  std::vector<model::Result> results;
  // Images are processed one by one, which limits the memory of a batch.
  for (size_t i = 0; i < images.size(); ++i) {
    layers::Features own;
    for (const at::Tensor& map : features) own.push_back(map.narrow(0, i, 1));
    results.push_back(Detect(own, images[i]));
  }
  return results;
}

model::Detections DetectionHead::Detect(const layers::Features& features,
                                        const ImageInfo& image) const {
  const layers::Features pyramid = neck_.Forward(features);
  const std::vector<at::Tensor> levels = rpn_.Forward(pyramid);
  // Every output is checked for NaN before scores are compared. Comparisons
  // with a NaN are always false, so sorting and suppression would give
  // arbitrary results.
  if (!AreFinite(levels)) return NotFinite();
  at::Tensor rois = rpn_.Select(levels, image.height, image.width).boxes;
  if (rois.size(0) == 0) return {};

  const std::optional<BoxPredictions> predictions =
      PredictBoxes(pyramid, rois, image);
  if (!predictions.has_value()) return NotFinite();
  const auto asked = model::OptionsOf<model::DetectionOptions>(image.options);
  const MulticlassNmsOptions options = NmsOptions(config_, asked);
  // If the model has no masks, the suppression uses boxes in pixels of the
  // picture.
  const ScoredBoxes kept = MulticlassNms(
      config_.masks ? predictions->boxes
                    : MultiplyByInverseScale(predictions->boxes, image),
      predictions->probabilities, options);
  const at::Tensor boxes =
      config_.masks ? DivideByScale(kept.boxes, image) : kept.boxes;
  model::Detections detections;
  detections.detections = ToDetections(boxes, kept);
  if (!config_.masks || !asked.masks || boxes.size(0) == 0) {
    return detections;
  }

  const std::vector<at::Tensor> logits =
      roi_.ForwardMasks(pyramid, kept.boxes, kept.labels);
  if (!AreFinite(logits)) return NotFinite();
  const at::Tensor masks = MeanMask(logits);
  for (int64_t i = 0; i < masks.size(0); ++i) {
    model::Detection& detection = detections.detections[i];
    detection.mask =
        ops::MakeMask(masks[i], detection.box, config_.mask_threshold,
                      image.original_height, image.original_width);
  }
  return detections;
}

std::optional<DetectionHead::BoxPredictions> DetectionHead::PredictBoxes(
    const layers::Features& pyramid, at::Tensor rois,
    const ImageInfo& image) const {
  at::Tensor logits;  // The sum over all stages.
  for (int stage = 0;; ++stage) {
    const BoxOutput output = roi_.ForwardBoxes(stage, pyramid, rois);
    if (!IsFinite(output.logits) || !IsFinite(output.deltas)) return {};
    logits = stage == 0 ? output.logits : logits + output.logits;
    const Deltas& stds = config_.box_stds[stage];
    if (stage + 1 == roi_.stages()) {
      // For boxes, the reference averages the stages' logits. For masks, it
      // averages the probabilities.
      return BoxPredictions{
          DecodeBoxes(rois, output.deltas, stds, image.height, image.width),
          at::softmax(logits / static_cast<double>(roi_.stages()), 1)};
    }
    rois = RefineBoxes(rois, output.logits, output.deltas, stds, image.height,
                       image.width);
  }
}

}  // namespace sfmamba::heads
