#ifndef SFMAMBA_SERVER_PREDICTION_LOGITS_MAP_H_
#define SFMAMBA_SERVER_PREDICTION_LOGITS_MAP_H_

#include <cstdint>
#include <utility>

#include "absl/time/time.h"
#include "kernels/pixels/resize_taps.h"
#include "model/result.h"
#include "server/image/image.h"

namespace sfmamba::prediction {

// Computes a picture's class map from the logits of a segmentation head, some
// rows at a time. The logits are resized to the model's input and then to the
// map. Each pixel gets the class with the highest logit. The model computes the
// same map itself unless SegmentationOptions::logits is set. Source:
// docs/heads.md, "UperNet". Thread-compatible.
class LogitsMap {
 public:
  // `input` is the size of the model's input, and `out` the size of the map.
  LogitsMap(model::Segmentation logits, int classes,
            const image::PictureSize& input, const image::PictureSize& out,
            bool confidence);

  bool done() const { return next_ == map_.height; }
  // Estimates how long the next ComputeNext() takes, usually some milliseconds.
  absl::Duration NextCost() const;
  // Computes the next rows of the map. Call it only while not done().
  void ComputeNext();
  // Returns the map. Call it once, when done().
  model::Segmentation Take() { return std::move(map_); }

  // The size in bytes of the logits of one model input.
  static int64_t Bytes(const image::PictureSize& input, int classes);
  // Estimates how long all calls of ComputeNext() take together.
  static absl::Duration Cost(const image::PictureSize& out, int classes,
                             bool confidence);

 private:
  const model::Segmentation logits_;
  const image::PictureSize input_;
  const bool confidence_;
  const absl::Duration cost_of_row_;
  model::Segmentation map_;  // Its first next_ rows are computed.
  int next_ = 0;
  kernels::ResizeTaps rows_, columns_;  // Set by the first ComputeNext().
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_LOGITS_MAP_H_
