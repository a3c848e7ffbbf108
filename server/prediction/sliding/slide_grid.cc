#include "server/prediction/sliding/slide_grid.h"

#include <algorithm>

namespace sfmamba::prediction {
namespace {

int WindowsOf(int side, int window, int stride) {
  return (std::max(side - window, 0) + stride - 1) / stride + 1;
}

}  // namespace

SlideGrid::SlideGrid(const image::PictureSize& picture,
                     image::PictureSize window,
                     const image::PictureSize& stride)
    : picture_(picture),
      window_{std::min(window.height, picture.height),
              std::min(window.width, picture.width)},
      stride_(stride),
      rows_(WindowsOf(picture.height, window.height, stride.height)),
      columns_(WindowsOf(picture.width, window.width, stride.width)) {}

int SlideGrid::Top(int row) const {
  return std::min(row * stride_.height, picture_.height - window_.height);
}

int SlideGrid::Left(int column) const {
  return std::min(column * stride_.width, picture_.width - window_.width);
}

image::PixelRect SlideGrid::Region(int64_t window) const {
  return {Left(window % columns_), Top(window / columns_), window_.width,
          window_.height};
}

int SlideGrid::Depth() const {
  // If all rows of windows were one stride apart, at most window / stride rows
  // (rounded up) would overlap. The last row of windows is moved up to end at
  // the picture's edge. This may add one overlapping row.
  return std::min(rows_,
                  (window_.height + stride_.height - 1) / stride_.height + 1);
}

int64_t SlideGrid::MostKept() const {
  return int64_t{1} * std::min(rows_, Depth() + 1) * columns_;
}

}  // namespace sfmamba::prediction
