#ifndef SFMAMBA_MODEL_HEADS_ANCHORS_H_
#define SFMAMBA_MODEL_HEADS_ANCHORS_H_

#include <cstdint>
#include <vector>

#include "model/result.h"

namespace sfmamba::heads {

// The anchors of one level of a pyramid: around the corner of every pixel a box
// of each ratio (height / width), all of the area of a square of `scale`
// strides. Source: docs/heads.md, "Anchors and proposals".
class Anchors {
 public:
  Anchors(int stride, float scale, const std::vector<float>& ratios);

  int per_pixel() const { return bases_.size(); }

  // Anchor `index` of a map `map_width` pixels wide; they are counted row by
  // row, pixel by pixel, ratio by ratio.
  model::Box At(int64_t index, int64_t map_width) const;

 private:
  int stride_;
  std::vector<model::Box> bases_;  // Those around the origin.
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_ANCHORS_H_
