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
  // Neighbouring rows of windows are one stride apart, except the last row.
  // Without the last row, a pixel row lies in at most window / stride rows of
  // windows (rounded up). The last row is moved up to end at the picture's
  // edge. The pixel row may therefore lie in the last row too, so 1 is added.
  return std::min(rows_,
                  (window_.height + stride_.height - 1) / stride_.height + 1);
}

int64_t SlideGrid::MostKept() const {
  return int64_t{1} * std::min(rows_, Depth() + 1) * columns_;
}

}  // namespace sfmamba::prediction
