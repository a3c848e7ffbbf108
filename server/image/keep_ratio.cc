#include "server/image/keep_ratio.h"

#include <algorithm>
#include <cstdint>

#include "opencv2/core.hpp"
#include "opencv2/core/utility.hpp"
#include "opencv2/imgproc.hpp"

namespace sfmamba::image {
namespace {

int Scaled(int side, double factor) {
  return std::max(1, static_cast<int>(side * factor + 0.5));
}

}  // namespace

void UseOneOpenCvThread() {
  static const bool single_threaded = (cv::setNumThreads(1), true);
  (void)single_threaded;
}

PictureSize KeepRatioSize(const PictureSize& size, int short_side,
                          int long_side) {
  const double factor = std::min(
      static_cast<double>(long_side) / std::max(size.height, size.width),
      static_cast<double>(short_side) / std::min(size.height, size.width));
  return {Scaled(size.height, factor), Scaled(size.width, factor)};
}

RgbImage ResizeBilinear(RgbImage image, const PictureSize& size) {
  if (image.height == size.height && image.width == size.width) return image;
  return ResizeBilinear(image, {0, 0, image.width, image.height}, size);
}

RgbImage ResizeBilinear(const RgbImage& image, const PixelRect& part,
                        const PictureSize& size) {
  UseOneOpenCvThread();
  RgbImage resized{size.width, size.height, {}};
  resized.data.resize(3 * size.pixels());
  // cv::Mat has no read-only form, so the code casts away const. It only reads
  // the pixels.
  const cv::Mat whole(image.height, image.width, CV_8UC3,
                      const_cast<uint8_t*>(image.data.data()));
  const cv::Mat from =
      whole(cv::Rect(part.left, part.top, part.width, part.height));
  cv::Mat to(size.height, size.width, CV_8UC3, resized.data.data());
  cv::resize(from, to, to.size(), 0, 0, cv::INTER_LINEAR);
  return resized;
}

}  // namespace sfmamba::image
