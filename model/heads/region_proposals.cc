#include "model/heads/region_proposals.h"

#include <algorithm>
#include <cmath>

#include "ATen/ops/cat.h"
#include "ATen/ops/from_blob.h"
#include "model/heads/box_coder.h"
#include "model/heads/feature_pyramid.h"

namespace sfmamba::heads {
namespace {

// The usual side of the finest map in pixels, for the choice of algorithms.
constexpr int kTypicalSide = 200;
constexpr Deltas kStds = {1, 1, 1, 1};

layers::Convolution MakeHidden(int channels,
                               const weights::StateDict::Scope& scope,
                               const ops::Implementation& implementation) {
  const layers::Convolution::Shape shape{channels, channels, 1, kTypicalSide,
                                         3};
  return layers::Convolution(shape,
                             layers::Convolution::Take(scope, shape, true), {},
                             ops::Activation::kRelu, implementation);
}

// Makes one convolution for both outputs, because both read the same map.
layers::Convolution MakeOutput(int channels, int anchors,
                               const weights::StateDict::Scope& scope,
                               const ops::Implementation& implementation) {
  const auto take = [&](const char* name, int out) {
    return layers::Convolution::Take(scope.Sub(name),
                                     {channels, out, 1, kTypicalSide, 1}, true);
  };
  const ops::Weights logits = take("rpn_cls", anchors);
  const ops::Weights deltas = take("rpn_reg", 4 * anchors);
  const ops::Weights both{at::cat({logits.weight, deltas.weight}),
                          at::cat({logits.bias, deltas.bias})};
  layers::Convolution::Shape shape{channels, 5 * anchors, 1, kTypicalSide, 1};
  shape.is_output = true;
  return layers::Convolution(shape, both, {}, ops::Activation::kNone,
                             implementation);
}

float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

struct ScoredAnchor {
  float score;
  int64_t index;
};

// Orders anchors by descending score. If scores are equal, orders them by
// index, so that the result does not depend on the sorting algorithm.
bool IsBetter(const ScoredAnchor& a, const ScoredAnchor& b) {
  return a.score != b.score ? a.score > b.score : a.index < b.index;
}

// Returns the best `count` anchors of a level in descending order of scores.
// `level` is one of Forward()'s results.
std::vector<ScoredAnchor> BestAnchors(const at::Tensor& level, int64_t count) {
  const int64_t channels = level.size(2), anchors = channels / 5;
  const int64_t pixels = level.numel() / channels;
  const float* values = level.const_data_ptr<float>();
  // The sigmoids are compared, and not the logits. Different large logits may
  // have equal sigmoids in fp32. The reference orders these by index.
  std::vector<ScoredAnchor> best;
  best.reserve(pixels * anchors);
  for (int64_t i = 0; i < pixels; ++i) {
    for (int64_t a = 0; a < anchors; ++a) {
      best.push_back({Sigmoid(values[i * channels + a]), i * anchors + a});
    }
  }
  if (static_cast<int64_t>(best.size()) > count) {
    std::nth_element(best.begin(), best.begin() + count, best.end(), IsBetter);
    best.resize(count);
  }
  std::sort(best.begin(), best.end(), IsBetter);
  return best;
}

// Returns the deltas of anchor `index` of a level.
Deltas DeltasAt(const at::Tensor& level, int64_t index) {
  const int64_t channels = level.size(2), anchors = channels / 5;
  const float* deltas = level.const_data_ptr<float>() +
                        index / anchors * channels + anchors +
                        index % anchors * 4;
  return {deltas[0], deltas[1], deltas[2], deltas[3]};
}

// The candidates of all levels before suppression.
struct Candidates {
  std::vector<model::Box> boxes;
  std::vector<float> scores;
  std::vector<int32_t> levels;
};

// Returns a tensor over a vector's values, which it does not own.
template <typename T>
at::Tensor View(std::vector<T>& values, at::IntArrayRef shape,
                at::ScalarType type) {
  return at::from_blob(values.data(), shape, type);
}

}  // namespace

RegionProposals::RegionProposals(const model::DetectorConfig& config,
                                 const weights::StateDict::Scope& scope,
                                 const ops::Implementation& implementation)
    : implementation_(implementation),
      config_(config),
      hidden_(
          MakeHidden(config.channels, scope.Sub("rpn_conv"), implementation)),
      output_(MakeOutput(config.channels, config.anchor_ratios.size(), scope,
                         implementation)) {}

std::vector<at::Tensor> RegionProposals::Forward(
    const layers::Features& pyramid) const {
  std::vector<at::Tensor> levels;
  for (const at::Tensor& map : pyramid) {
    levels.push_back(output_.Forward(hidden_.Forward(map))[0]
                         .permute({1, 2, 0})
                         .contiguous());
  }
  return levels;
}

Proposals RegionProposals::Select(const std::vector<at::Tensor>& levels,
                                  int height, int width) const {
  Candidates all;
  for (size_t i = 0; i < levels.size(); ++i) {
    const at::Tensor level = levels[i].cpu();
    const Anchors anchors(PyramidStride(i), config_.anchor_scale,
                          config_.anchor_ratios);
    for (const ScoredAnchor& anchor :
         BestAnchors(level, config_.rpn_candidates)) {
      const model::Box box =
          ClipBox(DecodeBox(anchors.At(anchor.index, level.size(1)),
                            DeltasAt(level, anchor.index), kStds),
                  height, width);
      if (!(box.x2 - box.x1 > 0 && box.y2 - box.y1 > 0)) continue;
      all.boxes.push_back(box);
      all.scores.push_back(anchor.score);
      all.levels.push_back(i);
    }
  }
  const int64_t count = all.boxes.size();
  static_assert(sizeof(model::Box) == 4 * sizeof(float));
  const at::Tensor boxes = View(all.boxes, {count, 4}, at::kFloat);
  const at::Tensor scores = View(all.scores, {count}, at::kFloat);
  const at::Tensor groups = View(all.levels, {count}, at::kInt);
  const at::Tensor kept = implementation_.Nms(
      boxes, scores, groups, config_.rpn_iou_threshold, config_.proposals);
  return {boxes.index_select(0, kept), scores.index_select(0, kept)};
}

}  // namespace sfmamba::heads
