#include "client/picture/lettering.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "opencv2/imgproc.hpp"

namespace sfmamba::client {
namespace {

constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;
constexpr double kFontHeight = 21;  // Height of capitals in pixels at scale 1.
constexpr size_t kMaxBytes = 40;

std::string Shortened(const std::string& text) {
  if (text.size() <= kMaxBytes) return text;
  return absl::StrCat(text.substr(0, kMaxBytes - 3), "...");
}

}  // namespace

Lettering::Lettering(cv::Size picture) {
  const double side = std::sqrt(1.0 * picture.width * picture.height);
  const double height = std::max(8.0, side / 45);
  stroke_ = std::max(1, static_cast<int>(std::lround(height / 9)));
  scale_ = height / kFontHeight;
  margin_ = std::max(2, static_cast<int>(std::lround(height / 4)));
}

cv::Size Lettering::BoxSize(const std::string& text) const {
  int below = 0;  // Height below the base line.
  const cv::Size size =
      cv::getTextSize(Shortened(text), kFont, scale_, stroke_, &below);
  return {size.width + 2 * margin_, size.height + below + margin_};
}

void Lettering::Write(const std::string& text, cv::Point top_left,
                      const cv::Scalar& background, cv::Mat* canvas) const {
  const std::string shortened = Shortened(text);
  int below = 0;
  const cv::Size size =
      cv::getTextSize(shortened, kFont, scale_, stroke_, &below);
  const double brightness =
      0.299 * background[0] + 0.587 * background[1] + 0.114 * background[2];
  cv::putText(
      *canvas, shortened,
      top_left + cv::Point(margin_, size.height + margin_ / 2 + below / 4),
      kFont, scale_, cv::Scalar::all(brightness < 128 ? 255 : 0), stroke_,
      cv::LINE_AA);
}

}  // namespace sfmamba::client
