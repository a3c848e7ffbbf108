#ifndef SFMAMBA_MODEL_STAGE_GEOMETRY_H_
#define SFMAMBA_MODEL_STAGE_GEOMETRY_H_

#include <cstdint>

#include "model/config.h"

namespace sfmamba::model {

// Returns the side of stage `stage`'s (0..3) map, in tokens, for an image whose
// side is `pixels`. Each of the stage + 2 convolutions of stride 2 before it
// halves the side and rounds up.
int64_t MapSide(int64_t pixels, int stage);

// The windows of a stage's map. All sizes are in tokens.
struct StageWindows {
  int64_t count = 0;              // Windows in a map; each is a sequence.
  int64_t height = 0, width = 0;  // The size of a window.
  // The side of the sub-windows that attention divides a window into, whole
  // ones. 0 means that attention sees the whole window.
  int64_t sub_window = 0;
  int64_t length = 0;  // Tokens of a sequence, including auxiliary ones.
};

// How stage 3 or 4 divides its maps into sequences. The network and the tuning
// of its scans both derive their shapes from it.
class StageGeometry {
 public:
  // `stage` is 2 or 3.
  StageGeometry(const BackboneConfig& config, int stage);

  // Returns the windows of a map of this size. With WindowMode::kFull there is
  // one, rounded up to whole sub-windows if the map is larger than one of them.
  StageWindows Windows(int64_t height, int64_t width) const;

 private:
  int window_;            // The side of a window; 0 means the whole map.
  int attention_window_;  // The side of a sub-window; 0 means none.
  int auxiliary_tokens_;  // Tokens added to each sequence: 0 or 2.
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_STAGE_GEOMETRY_H_
