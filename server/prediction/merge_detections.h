#ifndef SFMAMBA_SERVER_PREDICTION_MERGE_DETECTIONS_H_
#define SFMAMBA_SERVER_PREDICTION_MERGE_DETECTIONS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "model/result.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// Moves boxes and masks by (`left`, `top`) pixels. If (`left`, `top`) is the
// position of a part in the picture, this converts coordinates in the part to
// coordinates in the picture.
void Shift(int left, int top, model::Detections* detections);

// Returns a mask whose set pixels are set in at least one of `masks`. `masks`
// must not be empty.
std::shared_ptr<const model::InstanceMask> UnionOf(
    std::vector<std::shared_ptr<const model::InstanceMask>> masks);

struct MergeRule {
  v1::Tiles::Merge merge = v1::Tiles::NMS;
  v1::Tiles::Match match = v1::Tiles::IOU;
  float threshold = 0.5f;  // The minimum overlap of matching boxes.
  bool class_agnostic = false;
  int max_detections = 100;  // The maximum number of objects.
};

// Merges the detections in overlapping parts of a picture into objects. Each
// object starts as the remaining detection with the highest score, which is
// called its first detection. Two boxes match if they overlap by at least
// MergeRule::threshold.
// - NMS drops each detection whose box matches the first detection's box.
// - GREEDY_NMM visits the detections whose boxes match the first detection's
//   box, in descending order of scores. If such a detection also matches the
//   object's current box, it is merged into the object and extends the object's
//   box and mask. Otherwise, the detection is dropped.
// Unless MergeRule::class_agnostic is true, only detections of the first
// detection's class are dropped or merged. All other detections remain for
// later objects.
//
// The result has the same boxes as the result of the SAHI library, in the same
// order, even if scores are equal. Source: github.com/obss/sahi, "postprocess",
// NMS and GREEDYNMM.
//
//   DetectionMerger merger(all, rule);
//   while (!merger.done()) merger.MergeNext();
//
// Thread-compatible.
class DetectionMerger {
 public:
  // All boxes must be in pixels of the same picture.
  DetectionMerger(std::vector<model::Detection> detections,
                  const MergeRule& rule);

  bool done() const;
  // Completes the next object. Compares the object with each of the left()
  // detections. Must not be called if done() is true.
  void MergeNext();
  // Returns the number of detections that are neither merged into an object nor
  // dropped yet.
  int64_t left() const { return left_.size(); }
  // Returns the objects by descending score. May be called only once, after
  // done() becomes true.
  std::vector<model::Detection> Take() { return std::move(objects_); }

 private:
  const MergeRule rule_;
  std::vector<model::Detection> left_;  // Sorted by descending score.
  std::vector<model::Detection> objects_;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_MERGE_DETECTIONS_H_
