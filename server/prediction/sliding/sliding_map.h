#ifndef SFMAMBA_SERVER_PREDICTION_SLIDING_SLIDING_MAP_H_
#define SFMAMBA_SERVER_PREDICTION_SLIDING_SLIDING_MAP_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kernels/pixels/resize_taps.h"
#include "model/result.h"
#include "server/image/image.h"
#include "server/prediction/sliding/slide_grid.h"

namespace sfmamba::prediction {

// Computes a picture's class map from the logits of a grid of windows. The
// logits are resized to their window and averaged where windows overlap. The
// average is resized to the map, and each pixel gets the class with the highest
// logit. Source: docs/heads.md, "Sliding windows".
//
// The class works row by row and frees logits that are no longer needed. It
// stores the logits of at most grid.MostKept() windows if no window is computed
// before Wanted() allows it. Any thread may call Add() and IsReady(). Only one
// thread at a time may call the other methods.
class SlidingMap {
 public:
  // `out` is the size of the map.
  SlidingMap(const SlideGrid& grid, int classes, const image::PictureSize& out,
             bool confidence);

  // Stores the logits of a window. Windows are numbered row by row. Must be
  // called once for each window.
  void Add(int64_t window, model::Segmentation logits) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the number of windows, from the first one on, that may already be
  // computed.
  int64_t Wanted() const;
  // Returns true if the logits for the next row of the map have arrived.
  bool IsReady() const ABSL_LOCKS_EXCLUDED(mu_);
  bool done() const { return next_ == map_.height; }
  // Estimates how long the next ComputeNext() takes, usually a few
  // milliseconds.
  absl::Duration NextCost() const;
  // Computes the next rows of the map, as far as their logits have arrived.
  // Frees logits that are no longer needed.
  void ComputeNext() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the map. Must be called once, when done().
  model::Segmentation Take();

  // Bytes() returns the maximum memory of this object in bytes, without the
  // map. Cost() estimates how long all calls of ComputeNext() take together.
  static int64_t Bytes(const SlideGrid& grid, int classes);
  static absl::Duration Cost(const SlideGrid& grid, int classes,
                             const image::PictureSize& out);

 private:
  // Returns the number of picture rows for which all windows have arrived.
  int AvailableRows() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the index in means_ of the mean logits of picture row `row`.
  // Computes these means if needed, without overwriting the means of row
  // `other`.
  int MeanOf(int row, int other);

  const SlideGrid grid_;
  const int classes_;
  // Resize from the picture to the map.
  const kernels::ResizeTaps rows_, columns_;
  const absl::Duration cost_of_row_;  // The expected time per row of the map.
  model::Segmentation map_;
  std::atomic<int> next_{0};  // The next row of the map.
  int first_kept_ = 0;        // The first row of windows that is still needed.
  // The mean logits of the last two picture rows, each [picture width,
  // classes], and the numbers of these rows.
  std::vector<float> means_;
  std::array<int, 2> mean_rows_ = {-1, -1};
  // Resize from the logits to their window. Created when the first logits
  // arrive.
  kernels::ResizeTaps window_rows_, window_columns_;
  int logits_width_ = 0;

  mutable absl::Mutex mu_;
  // The logits of each window. Complete rows are read without the mutex,
  // because complete rows no longer change.
  std::vector<model::Segmentation> logits_;
  std::vector<int> missing_ ABSL_GUARDED_BY(mu_);  // By row of windows.
  int complete_ ABSL_GUARDED_BY(mu_) =
      0;  // Complete rows of windows, from the first.
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_SLIDING_SLIDING_MAP_H_
