#ifndef SFMAMBA_SERVER_PREDICTION_SLIDING_SLIDE_GRID_H_
#define SFMAMBA_SERVER_PREDICTION_SLIDING_SLIDE_GRID_H_

#include <cstdint>

#include "server/image/image.h"

namespace sfmamba::prediction {

// Where a window that slides over a picture stands: row by row, each a stride
// behind the one before it, the last of a row or column moved inwards. A window
// larger than the picture is cut to it. Source: mmsegmentation 1.2.2's mode
// "slide", whose windows SAHI's tiles are too.
class SlideGrid {
 public:
  // No size is empty. A stride has at most the window's sides.
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
  // Most rows of windows that cover one row of the picture.
  int Depth() const;
  // Most windows whose logits a SlidingMap keeps: a row more than Depth(),
  // because a row of the map lies between two rows of the picture.
  int64_t MostKept() const;
  image::PixelRect Region(int64_t window) const;

 private:
  image::PictureSize picture_, window_, stride_;
  int rows_, columns_;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_SLIDING_SLIDE_GRID_H_
