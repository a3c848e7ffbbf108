#include "model/heads/anchors.h"

#include <cmath>

namespace sfmamba::heads {

Anchors::Anchors(int stride, float scale, const std::vector<float>& ratios)
    : stride_(stride) {
  for (const float ratio : ratios) {
    // `ratio` is height / width. The boxes of all ratios have the same area.
    // The factors are multiplied in the reference's order, because fp32 rounds
    // after each multiplication.
    const float root = std::sqrt(ratio);
    const float half_width = 0.5f * (stride * (1 / root) * scale);
    const float half_height = 0.5f * (stride * root * scale);
    bases_.push_back({-half_width, -half_height, half_width, half_height});
  }
}

model::Box Anchors::At(int64_t index, int64_t map_width) const {
  const model::Box& base = bases_[index % per_pixel()];
  const int64_t pixel = index / per_pixel();
  const float x = pixel % map_width * stride_;
  const float y = pixel / map_width * stride_;
  return {base.x1 + x, base.y1 + y, base.x2 + x, base.y2 + y};
}

}  // namespace sfmamba::heads
