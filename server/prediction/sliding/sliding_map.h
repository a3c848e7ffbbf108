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

// Computes a picture's class map from the logits of overlapping windows.
// Resizes the logits of each window to the window's size. Averages the logits
// where windows overlap. Resizes the average to the size of the map, and gives
// each pixel the class with the highest logit. Source: docs/heads.md, "Sliding
// windows".
//
// The map is computed row by row, and logits that are no longer needed are
// freed. If windows are computed only when Wanted() allows them, the logits of
// at most grid.MostKept() windows are in memory. Any thread may call Add() and
// IsReady(). Only one thread at a time may call the other methods.
class SlidingMap {
 public:
  // `out` is the size of the map. If `confidence` is true, the map also
  // contains each pixel's confidence.
  SlidingMap(const SlideGrid& grid, int classes, const image::PictureSize& out,
             bool confidence);

  // Stores the logits of one window. The index `window` counts the windows row
  // by row. Must be called once for each window.
  void Add(int64_t window, model::Segmentation logits) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns how many windows may be computed now, counted from the first
  // window. Later windows must wait, so that not too many logits are in memory.
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
  // Returns the map. May be called only once, after done() becomes true.
  model::Segmentation Take();

  // Bytes() returns the maximum memory of a SlidingMap in bytes, without the
  // resulting map. Cost() estimates how long all calls of ComputeNext() take
  // together.
  static int64_t Bytes(const SlideGrid& grid, int classes);
  static absl::Duration Cost(const SlideGrid& grid, int classes,
                             const image::PictureSize& out);

 private:
  // Returns the number of picture rows, counted from the top, for which the
  // logits of all windows have arrived.
  int AvailableRows() const ABSL_LOCKS_EXCLUDED(mu_);
  // Computes the mean logits of picture row `row`, unless means_ already
  // contains these logits. Returns the index of the logits in means_, 0 or 1.
  // Does not overwrite the logits of row `other`.
  int MeanOf(int row, int other);

  const SlideGrid grid_;
  const int classes_;
  // The weights for resizing the average from the picture's size to the map's
  // size.
  const kernels::ResizeTaps rows_, columns_;
  const absl::Duration cost_of_row_;  // The expected time per row of the map.
  model::Segmentation map_;
  std::atomic<int> next_{0};  // The next row of the map.
  int first_kept_ = 0;        // The first row of windows still in memory.
  // The mean logits of the two picture rows that were computed last. Each row
  // has the shape [picture width, classes]. `mean_rows_` contains the numbers
  // of these two rows.
  std::vector<float> means_;
  std::array<int, 2> mean_rows_ = {-1, -1};
  // The weights for resizing the logits to the size of their window. Set by the
  // first ComputeNext().
  kernels::ResizeTaps window_rows_, window_columns_;
  int logits_width_ = 0;

  mutable absl::Mutex mu_;
  // The logits of each window. When the logits of all windows of a row have
  // arrived, the row no longer changes and is read without the mutex.
  std::vector<model::Segmentation> logits_;
  // For each row of windows, the number of windows whose logits have not
  // arrived.
  std::vector<int> missing_ ABSL_GUARDED_BY(mu_);
  // The logits of all windows have arrived for the first `complete_` rows of
  // windows.
  int complete_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_SLIDING_SLIDING_MAP_H_
