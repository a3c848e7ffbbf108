#ifndef SFMAMBA_MODEL_HEADS_ANCHORS_H_
#define SFMAMBA_MODEL_HEADS_ANCHORS_H_

#include <cstdint>
#include <vector>

#include "model/result.h"

namespace sfmamba::heads {

// The anchors (default boxes) of one level of a pyramid. Around the corner of
// every pixel there is a box for each ratio, height / width. A box has the area
// of a square whose side is `scale` strides. Source: docs/heads.md, "Anchors
// and proposals".
class Anchors {
 public:
  Anchors(int stride, float scale, const std::vector<float>& ratios);

  int per_pixel() const { return bases_.size(); }

  // Returns anchor `index` of a map that is `map_width` pixels wide. Anchors
  // are ordered by row, then by column, then by ratio.
  model::Box At(int64_t index, int64_t map_width) const;

 private:
  int stride_;
  std::vector<model::Box> bases_;  // The anchors around (0, 0).
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_ANCHORS_H_
