#ifndef SFMAMBA_SERVER_PREDICTION_LOGITS_MAP_H_
#define SFMAMBA_SERVER_PREDICTION_LOGITS_MAP_H_

#include <cstdint>
#include <utility>

#include "absl/time/time.h"
#include "kernels/pixels/resize_taps.h"
#include "model/result.h"
#include "server/image/image.h"

namespace sfmamba::prediction {

// A picture's class map from the logits of its head, computed some rows at a
// time: the logits are resized to the model's input, then to the map, and each
// pixel gets its best class. The same map as the model computes itself unless
// SegmentationOptions::logits is set. Source: docs/heads.md, "UperNet".
// Thread-compatible.
class LogitsMap {
 public:
  // `input`: the size of the model's input. The map gets the size `out`.
  LogitsMap(model::Segmentation logits, int classes,
            const image::PictureSize& input, const image::PictureSize& out,
            bool confidence);

  bool done() const { return next_ == map_.height; }
  // How long ComputeNext() is expected to take, some milliseconds.
  absl::Duration NextCost() const;
  // Computes the next rows of the map. Only while not done().
  void ComputeNext();
  // The map; once, when done().
  model::Segmentation Take() { return std::move(map_); }

  // The bytes of an input's logits.
  static int64_t Bytes(const image::PictureSize& input, int classes);
  // How long ComputeNext() is expected to take for all rows.
  static absl::Duration Cost(const image::PictureSize& out, int classes,
                             bool confidence);

 private:
  const model::Segmentation logits_;
  const image::PictureSize input_;
  const bool confidence_;
  const absl::Duration cost_of_row_;
  model::Segmentation map_;  // The first next_ rows of it.
  int next_ = 0;
  kernels::ResizeTaps rows_, columns_;  // Once rows are computed.
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_LOGITS_MAP_H_
