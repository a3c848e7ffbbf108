#ifndef SFMAMBA_SERVER_PREDICTION_LOGITS_MAP_H_
#define SFMAMBA_SERVER_PREDICTION_LOGITS_MAP_H_

#include <cstdint>
#include <utility>

#include "absl/time/time.h"
#include "kernels/pixels/resize_taps.h"
#include "model/result.h"
#include "server/image/image.h"

namespace sfmamba::prediction {

// Computes the class map of a picture from the logits of a segmentation head,
// some rows at a time. Resizes the logits first to the size of the model's
// input, then to the size of the map. Gives each pixel the class with the
// highest logit. The model returns logits only if SegmentationOptions::logits
// is set. Otherwise the model computes the same map itself. The section "Class
// maps" of docs/heads.md defines the map. Thread-compatible.
class LogitsMap {
 public:
  // `input` is the size of the model's input, and `out` the size of the map. If
  // `confidence` is true, the map also contains each pixel's confidence.
  LogitsMap(model::Segmentation logits, int classes,
            const image::PictureSize& input, const image::PictureSize& out,
            bool confidence);

  bool done() const { return next_ == map_.height; }
  // Estimates how long the next ComputeNext() takes, usually a few
  // milliseconds.
  absl::Duration NextCost() const;
  // Computes the next rows of the map. Must not be called if done() is true.
  void ComputeNext();
  // Returns the map. May be called only once, after done() becomes true.
  model::Segmentation Take() { return std::move(map_); }

  // Returns the size in bytes of the logits of one model input.
  static int64_t Bytes(const image::PictureSize& input, int classes);
  // Estimates how long all calls of ComputeNext() take together.
  static absl::Duration Cost(const image::PictureSize& out, int classes,
                             bool confidence);

 private:
  const model::Segmentation logits_;
  const image::PictureSize input_;
  const bool confidence_;
  const absl::Duration cost_of_row_;
  model::Segmentation map_;  // The first next_ rows are computed.
  int next_ = 0;
  // The weights for resizing the logits. The first call of ComputeNext() sets
  // these members.
  kernels::ResizeTaps rows_, columns_;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_LOGITS_MAP_H_
