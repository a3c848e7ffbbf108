#ifndef SFMAMBA_SERVER_PREDICTION_SLIDING_SLIDE_GRID_H_
#define SFMAMBA_SERVER_PREDICTION_SLIDING_SLIDE_GRID_H_

#include <cstdint>

#include "server/image/image.h"

namespace sfmamba::prediction {

// The positions of a window that slides over a picture. The windows are ordered
// row by row, and neighbours are one stride apart. The last window of a row or
// column is moved inwards to end at the picture's edge. A window larger than
// the picture is reduced to the picture. Source: mode "slide" of mmsegmentation
// 1.2.2. SAHI's tiles are the same windows.
class SlideGrid {
 public:
  // No size may be empty. A stride must not exceed the window.
  SlideGrid(const image::PictureSize& picture, image::PictureSize window,
            const image::PictureSize& stride);

  const image::PictureSize& picture() const { return picture_; }
  const image::PictureSize& window() const { return window_; }
  const image::PictureSize& stride() const { return stride_; }
  int rows() const { return rows_; }
  int columns() const { return columns_; }
  int64_t windows() const { return int64_t{1} * rows_ * columns_; }
  int Top(int row) const;
  int Left(int column) const;
  // Returns the maximum number of window rows that cover one row of the
  // picture.
  int Depth() const;
  // Returns the maximum number of windows whose logits a SlidingMap stores. The
  // number includes one window row more than Depth(), because a row of the map
  // lies between two rows of the picture.
  int64_t MostKept() const;
  image::PixelRect Region(int64_t window) const;

 private:
  image::PictureSize picture_, window_, stride_;
  int rows_, columns_;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_SLIDING_SLIDE_GRID_H_
