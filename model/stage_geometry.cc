#include "model/stage_geometry.h"

namespace sfmamba::model {
namespace {

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

int64_t MapSide(int64_t pixels, int stage) {
  return CeilDivide(pixels, int64_t{4} << stage);
}

StageGeometry::StageGeometry(const BackboneConfig& config, int stage)
    : window_(config.window_mode == WindowMode::kFull
                  ? 0
                  : config.windows[stage - 2]),
      attention_window_(config.attention_windows[stage - 2]),
      auxiliary_tokens_(config.tokens == Tokens::kNone ? 0 : 2) {}

StageWindows StageGeometry::Windows(int64_t height, int64_t width) const {
  StageWindows windows;
  const int64_t side = attention_window_;
  if (window_ > 0) {
    windows.count = CeilDivide(height, window_) * CeilDivide(width, window_);
    windows.height = windows.width = window_;
    windows.sub_window = side;
  } else {
    // A map that fits into one sub-window is not split and not padded.
    const bool split = side > 0 && (height > side || width > side);
    windows.count = 1;
    windows.height = split ? CeilDivide(height, side) * side : height;
    windows.width = split ? CeilDivide(width, side) * side : width;
    windows.sub_window = split ? side : 0;
  }
  windows.length = windows.height * windows.width + auxiliary_tokens_;
  return windows;
}

}  // namespace sfmamba::model
