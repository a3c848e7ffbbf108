#ifndef SFMAMBA_MODEL_HEADS_ANCHORS_H_
#define SFMAMBA_MODEL_HEADS_ANCHORS_H_

#include <cstdint>
#include <vector>

#include "model/result.h"

namespace sfmamba::heads {

// The anchors (default boxes) of one level of a feature pyramid, in pixels of
// the network's input. Every pixel of the level's map has one anchor for each
// ratio (height / width). The anchors of a pixel are centred on its top left
// corner. Each anchor has the area (scale * stride)^2. Source: docs/heads.md,
// "Anchors and proposals".
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
