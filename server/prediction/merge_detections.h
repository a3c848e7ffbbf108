#ifndef SFMAMBA_SERVER_PREDICTION_MERGE_DETECTIONS_H_
#define SFMAMBA_SERVER_PREDICTION_MERGE_DETECTIONS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "model/result.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// Moves boxes and masks by (left, top): from the pixels of a part of a picture
// to those of the picture.
void Shift(int left, int top, model::Detections* detections);

// The pixels that are set in any of the masks, of which there is at least one.
std::shared_ptr<const model::InstanceMask> UnionOf(
    std::vector<std::shared_ptr<const model::InstanceMask>> masks);

struct MergeRule {
  v1::Tiles::Merge merge = v1::Tiles::NMS;
  v1::Tiles::Match match = v1::Tiles::IOU;
  float threshold = 0.5f;  // Boxes match from this overlap on.
  bool class_agnostic = false;
  int max_detections = 100;  // The best ones are kept.
};

// Merges what was detected in overlapping parts of a picture, object by object,
// best first. By NMS an object is the best detection that is left, and those
// that match it are dropped. By GREEDY_NMM its box and mask grow by them: one
// after another, best first, and only by those that still match the box that
// has grown; the others are dropped too.
// Source: github.com/obss/sahi, "postprocess", NMS and GREEDYNMM: the same
// boxes, with the same order of equal scores.
//
//   DetectionMerger merger(all, rule);
//   while (!merger.done()) merger.MergeNext();
//
// Thread-compatible.
class DetectionMerger {
 public:
  // All boxes are in the same picture's pixels.
  DetectionMerger(std::vector<model::Detection> detections,
                  const MergeRule& rule);

  bool done() const;
  // Completes the next object, by one comparison with each of left(). Only
  // while not done().
  void MergeNext();
  // Detections that belong to no object yet.
  int64_t left() const { return left_.size(); }
  // The objects, in descending order of scores; once, when done().
  std::vector<model::Detection> Take() { return std::move(objects_); }

 private:
  const MergeRule rule_;
  std::vector<model::Detection> left_;  // The best first.
  std::vector<model::Detection> objects_;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_MERGE_DETECTIONS_H_
