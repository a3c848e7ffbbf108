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
// average is resized to the map, and each pixel gets its best class. Source:
// docs/heads.md, "Sliding windows".
//
// The class works row by row and frees logits that are no longer needed. It
// stores the logits of at most grid.MostKept() windows, provided that no window
// is computed before Wanted() allows it. Any thread may call Add() and
// IsReady(). Only one thread at a time may call the other methods.
class SlidingMap {
 public:
  // `out` is the size of the map.
  SlidingMap(const SlideGrid& grid, int classes, const image::PictureSize& out,
             bool confidence);

  // Takes the logits of a window. Windows are numbered row by row. Call it once
  // for each window.
  void Add(int64_t window, model::Segmentation logits) ABSL_LOCKS_EXCLUDED(mu_);

  // Only the windows before this one may be computed yet.
  int64_t Wanted() const;
  // Whether the logits for the next row of the map have arrived.
  bool IsReady() const ABSL_LOCKS_EXCLUDED(mu_);
  bool done() const { return next_ == map_.height; }
  // Estimates how long the next ComputeNext() takes, usually some milliseconds.
  absl::Duration NextCost() const;
  // Computes the next rows of the map, as far as their logits have arrived.
  // Frees the logits that are no longer needed.
  void ComputeNext() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the map. Call it once, when done().
  model::Segmentation Take();

  // Bytes() is the maximum memory of this object in bytes, without the map.
  // Cost() estimates how long all calls of ComputeNext() take together.
  static int64_t Bytes(const SlideGrid& grid, int classes);
  static absl::Duration Cost(const SlideGrid& grid, int classes,
                             const image::PictureSize& out);

 private:
  // The number of picture rows for which all windows have arrived.
  int AvailableRows() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the slot of means_ that holds the mean logits of picture row `row`.
  // Computes them if needed, without overwriting row `other`.
  int MeanOf(int row, int other);

  const SlideGrid grid_;
  const int classes_;
  // Resizing from the picture to the map.
  const kernels::ResizeTaps rows_, columns_;
  const absl::Duration cost_of_row_;  // The expected time per row of the map.
  model::Segmentation map_;
  std::atomic<int> next_{0};  // The next row of the map.
  int first_kept_ = 0;        // The first row of windows still needed.
  // The mean logits of the last two picture rows, each [picture width,
  // classes], and the numbers of these rows.
  std::vector<float> means_;
  std::array<int, 2> mean_rows_ = {-1, -1};
  // Resizing from the logits to their window. Set once the first logits have
  // arrived.
  kernels::ResizeTaps window_rows_, window_columns_;
  int logits_width_ = 0;

  mutable absl::Mutex mu_;
  // The logits of each window. Complete rows are read without the mutex,
  // because they no longer change.
  std::vector<model::Segmentation> logits_;
  std::vector<int> missing_ ABSL_GUARDED_BY(mu_);  // Windows missing per row.
  int complete_ ABSL_GUARDED_BY(mu_) =
      0;  // Complete rows of windows, from the first.
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_SLIDING_SLIDING_MAP_H_
