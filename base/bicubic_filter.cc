#include "base/bicubic_filter.h"

#include <algorithm>
#include <cmath>

namespace sfmamba::base {
namespace {

// Keys' cubic with a = -0.5.
double Cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

constexpr double kReach = 2;  // The cubic is 0 for |x| >= kReach.

}  // namespace

BicubicFilter::BicubicFilter(int in, int64_t out)
    : in_(in),
      scale_(static_cast<double>(in) / out),
      widened_(std::max(scale_, 1.0)) {}

int BicubicFilter::most_taps() const {
  return static_cast<int>(std::ceil(kReach * widened_)) * 2 + 1;
}

// Repeats Pillow's operations in Pillow's order, because the rounding of
// doubles depends on it.
void BicubicFilter::TapsOf(int64_t i, Taps* taps) {
  const double support = kReach * widened_;
  const double inverse = 1.0 / widened_;
  const double center = (i + 0.5) * scale_;
  taps->first = std::max(0, static_cast<int>(center - support + 0.5));
  const int end = std::min(in_, static_cast<int>(center + support + 0.5));
  exact_.clear();
  double sum = 0;
  for (int k = taps->first; k < end; ++k) {
    exact_.push_back(Cubic((k - center + 0.5) * inverse));
    sum += exact_.back();
  }
  taps->weights.clear();
  for (const double exact : exact_) {
    const double weight =
        (sum != 0 ? exact / sum : exact) * (1 << kFractionBits);
    taps->weights.push_back(
        static_cast<int32_t>(weight + (weight < 0 ? -0.5 : 0.5)));
  }
}

}  // namespace sfmamba::base
