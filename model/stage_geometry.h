#ifndef SFMAMBA_MODEL_STAGE_GEOMETRY_H_
#define SFMAMBA_MODEL_STAGE_GEOMETRY_H_

#include <cstdint>

#include "model/config.h"

namespace sfmamba::model {

// Returns the side, in tokens, of the map of stage `stage` (0..3). `pixels` is
// the side of the image. `stage` + 2 convolutions of stride 2 come before the
// stage. Each of them halves the side, rounded up.
int64_t MapSide(int64_t pixels, int stage);

// The windows into which a stage's map is divided. All sizes are in tokens.
struct StageWindows {
  int64_t count = 0;              // Windows per map; each is a sequence.
  int64_t height = 0, width = 0;  // The size of a window.
  // The side of the sub-windows to which attention is limited. A window
  // consists of whole sub-windows. 0 means that attention sees the whole
  // window.
  int64_t sub_window = 0;
  int64_t length = 0;  // Tokens per sequence, with auxiliary ones.
};

// Computes how the third or the fourth stage of a network divides its maps into
// sequences. The network and the tuning of its scans both use this class, so
// that their shapes agree.
class StageGeometry {
 public:
  // `stage` is an index: 2 for the third stage and 3 for the fourth stage.
  StageGeometry(const BackboneConfig& config, int stage);

  // Returns the windows for a map of this size. WindowMode::kFull gives only
  // one window. If the map is larger than a sub-window, the size of this window
  // is rounded up to whole sub-windows.
  StageWindows Windows(int64_t height, int64_t width) const;

 private:
  int window_;            // 0 means the whole map.
  int attention_window_;  // 0 means no sub-windows.
  int auxiliary_tokens_;  // Per sequence, 0 or 2.
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_STAGE_GEOMETRY_H_
