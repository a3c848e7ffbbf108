#ifndef SFMAMBA_SERVER_PREDICTION_SLIDING_SLIDE_GRID_H_
#define SFMAMBA_SERVER_PREDICTION_SLIDING_SLIDE_GRID_H_

#include <cstdint>

#include "server/image/image.h"

namespace sfmamba::prediction {

// The positions of a window that slides over a picture. Neighbouring windows
// are one stride apart. Windows are numbered row by row. The last window of a
// row or column is moved inwards, so that it ends at the picture's edge. A
// window larger than the picture is reduced to the size of the picture. Source:
// mode "slide" of mmsegmentation 1.2.2. SAHI places its tiles at the same
// positions.
class SlideGrid {
 public:
  // All sides must be positive. A stride must not exceed the window.
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
  // Returns the maximum number of rows of windows that contain the same pixel
  // row of the picture.
  int Depth() const;
  // Returns the maximum number of windows whose logits a SlidingMap stores at
  // the same time. The SlidingMap computes each row of the class map from one
  // or two neighbouring pixel rows of the picture. Up to Depth() + 1 rows of
  // windows contain at least one of these pixel rows. The SlidingMap stores the
  // logits of all windows in these Depth() + 1 rows of windows.
  int64_t MostKept() const;
  image::PixelRect Region(int64_t window) const;

 private:
  image::PictureSize picture_, window_, stride_;
  int rows_, columns_;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_SLIDING_SLIDE_GRID_H_
