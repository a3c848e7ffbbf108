#include "model/heads/multiclass_nms.h"

#include "ATen/ops/empty.h"
#include "model/heads/box_coder.h"
#include "model/ops/cpu/answer_ops.h"

namespace sfmamba::heads {
namespace {

// Returns for each class whether detections of it are wanted. If `listed` is
// empty, all classes are wanted.
std::vector<bool> Wanted(const std::vector<int>& listed, int64_t classes) {
  std::vector<bool> wanted(classes, listed.empty());
  for (const int label : listed) {
    if (label >= 0 && label < classes) wanted[label] = true;
  }
  return wanted;
}

// Returns row * classes + class for each probability that exceeds the threshold
// and belongs to a wanted class. These indices are in ascending order, as in
// the reference. The order matters: among boxes with equal scores, suppression
// prefers the box that comes first.
std::vector<int64_t> Candidates(const at::Tensor& probabilities,
                                const MulticlassNmsOptions& options) {
  const int64_t classes = probabilities.size(1) - 1;
  const std::vector<bool> wanted = Wanted(options.classes, classes);
  std::vector<int64_t> candidates;
  for (int64_t i = 0; i < probabilities.size(0); ++i) {
    const float* row =
        probabilities.const_data_ptr<float>() + i * probabilities.stride(0);
    for (int64_t label = 0; label < classes; ++label) {
      if (wanted[label] && row[label] > options.score_threshold) {
        candidates.push_back(i * classes + label);
      }
    }
  }
  return candidates;
}

}  // namespace

ScoredBoxes MulticlassNms(const at::Tensor& boxes,
                          const at::Tensor& probabilities,
                          const MulticlassNmsOptions& options) {
  const int64_t classes = probabilities.size(1) - 1;
  const bool one_box = boxes.size(1) == 4;
  const std::vector<int64_t> candidates = Candidates(probabilities, options);
  const int64_t count = candidates.size();
  const ScoredBoxes all{
      at::empty({count, 4}, at::kFloat), at::empty({count}, at::kFloat),
      at::empty({count}, at::kLong), at::empty({count}, at::kLong)};
  const at::Tensor rows = boxes.view({-1, 4});
  for (int64_t k = 0; k < count; ++k) {
    const int64_t row = candidates[k] / classes;
    const int64_t label = candidates[k] % classes;
    SetBox(all.boxes, k, BoxAt(rows, one_box ? row : candidates[k]));
    all.scores.data_ptr<float>()[k] =
        probabilities
            .const_data_ptr<float>()[row * probabilities.stride(0) + label];
    all.indices.data_ptr<int64_t>()[k] = candidates[k];
    all.labels.data_ptr<int64_t>()[k] = label;
  }
  const at::Tensor groups =
      options.class_agnostic ? at::Tensor() : all.labels.to(at::kInt);
  const at::Tensor kept = ops::Nms(all.boxes, all.scores, groups,
                                   options.iou_threshold, options.max_kept);
  return {all.boxes.index_select(0, kept), all.scores.index_select(0, kept),
          all.indices.index_select(0, kept), all.labels.index_select(0, kept)};
}

}  // namespace sfmamba::heads
