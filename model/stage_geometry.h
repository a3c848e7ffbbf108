#ifndef SFMAMBA_MODEL_STAGE_GEOMETRY_H_
#define SFMAMBA_MODEL_STAGE_GEOMETRY_H_

#include <cstdint>

#include "model/config.h"

namespace sfmamba::model {

// Returns the side, in tokens, of the map of stage `stage` (0..3), for an image
// whose side is `pixels`. Each of the stage + 2 convolutions of stride 2 before
// the stage halves the side and rounds up.
int64_t MapSide(int64_t pixels, int stage);

// The windows that a stage's map is divided into. All sizes are in tokens.
struct StageWindows {
  int64_t count = 0;              // Windows in a map; each is a sequence.
  int64_t height = 0, width = 0;  // The size of a window.
  // The side of the sub-windows that attention is limited to. They divide a
  // window without remainder. 0 means that attention sees the whole window.
  int64_t sub_window = 0;
  int64_t length = 0;  // Tokens of a sequence, including auxiliary ones.
};

// Computes how stage 3 or 4 divides its maps into sequences. The network and
// the tuning of its scans both use this class, so that their shapes agree.
class StageGeometry {
 public:
  // `stage` is 2 for stage 3 and 3 for stage 4.
  StageGeometry(const BackboneConfig& config, int stage);

  // Returns the windows of a map of this size. With WindowMode::kFull there is
  // only one window. It is rounded up to whole sub-windows if the map is larger
  // than a sub-window.
  StageWindows Windows(int64_t height, int64_t width) const;

 private:
  int window_;            // The side of a window; 0 means the whole map.
  int attention_window_;  // The side of a sub-window; 0 means none.
  int auxiliary_tokens_;  // Tokens added to each sequence: 0 or 2.
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_STAGE_GEOMETRY_H_
