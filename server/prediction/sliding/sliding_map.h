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

// A picture's class map from the logits of the windows of a grid: these are
// resized to their windows and averaged, the mean is resized from the picture
// that they slide over to the map, and each pixel gets its best class. Source:
// docs/heads.md, "Sliding windows".
//
// Works row by row and keeps logits only while they are needed: at most those
// of grid.MostKept() windows, provided that none is computed before Wanted()
// says so. Any thread may call Add() and IsReady(); the others are called by
// one at a time.
class SlidingMap {
 public:
  // The map gets the size `out`.
  SlidingMap(const SlideGrid& grid, int classes, const image::PictureSize& out,
             bool confidence);

  // Takes the logits of a window, numbered row by row, once.
  void Add(int64_t window, model::Segmentation logits) ABSL_LOCKS_EXCLUDED(mu_);

  // The windows before this one may be computed.
  int64_t Wanted() const;
  // Whether there are the logits that the next row of the map is made of.
  bool IsReady() const ABSL_LOCKS_EXCLUDED(mu_);
  bool done() const { return next_ == map_.height; }
  // How long ComputeNext() is expected to take, some milliseconds.
  absl::Duration NextCost() const;
  // Computes the next rows of the map as far as the logits are there, and drops
  // the logits that are not needed any more.
  void ComputeNext() ABSL_LOCKS_EXCLUDED(mu_);
  // The map; once, when done().
  model::Segmentation Take();

  // The memory that the object takes at most beside the map, in bytes, and how
  // long ComputeNext() is expected to take for all rows.
  static int64_t Bytes(const SlideGrid& grid, int classes);
  static absl::Duration Cost(const SlideGrid& grid, int classes,
                             const image::PictureSize& out);

 private:
  // Rows of the picture whose windows are all there.
  int AvailableRows() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns where in means_ the mean logits of a row of the picture are. Those
  // of row `other` stay there.
  int MeanOf(int row, int other);

  const SlideGrid grid_;
  const int classes_;
  // From the picture to the map.
  const kernels::ResizeTaps rows_, columns_;
  const absl::Duration cost_of_row_;  // The map's rows take this long each.
  model::Segmentation map_;
  std::atomic<int> next_{0};  // The next row of the map.
  int first_kept_ = 0;        // The first row of windows that is needed.
  // The last two rows of mean logits, each [picture width, classes], and whose
  // they are.
  std::vector<float> means_;
  std::array<int, 2> mean_rows_ = {-1, -1};
  // Resizes of the windows, once the first logits have told their size.
  kernels::ResizeTaps window_rows_, window_columns_;
  int logits_width_ = 0;

  mutable absl::Mutex mu_;
  // By window. Those of complete rows are read without the mutex: nothing
  // changes them any more.
  std::vector<model::Segmentation> logits_;
  std::vector<int> missing_ ABSL_GUARDED_BY(mu_);  // By row of windows.
  int complete_ ABSL_GUARDED_BY(mu_) = 0;  // Rows of windows, from the first.
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_SLIDING_SLIDING_MAP_H_
