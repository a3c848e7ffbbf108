#include <algorithm>
#include <cmath>

#include "kernels/detection/mask_paste.h"

namespace sfmamba::kernels {
namespace {

// Returns `value`, which must be a whole number or a NaN, limited to [0,
// limit]. Returns 0 for a NaN.
int Clamp(float value, int limit) {
  if (!(value > 0)) return 0;
  return value < static_cast<float>(limit) ? static_cast<int>(value) : limit;
}

}  // namespace

ResizeTaps PasteTaps(float begin, float end, int side, int first, int count) {
  ResizeTaps taps;
  taps.count = 2;
  taps.index.assign(2 * count, 0);
  taps.weight.assign(2 * count, 0.0f);
  for (int i = 0; i < count; ++i) {
    const float place = (static_cast<float>(first + i) + 0.5f - begin) /
                            (end - begin) * static_cast<float>(side) -
                        0.5f;
    // Skips positions at which both cells are outside the mask. Such positions
    // may be too large for an int.
    if (!(place > -1.0f && place < static_cast<float>(side))) continue;
    const int cell = place < 0 ? -1 : static_cast<int>(place);  // Rounded down.
    const float low = static_cast<float>(cell);
    taps.index[2 * i] = std::max(cell, 0);
    taps.index[2 * i + 1] = std::min(cell + 1, side - 1);
    if (cell >= 0) taps.weight[2 * i] = 1.0f - (place - low);
    if (cell + 1 < side) taps.weight[2 * i + 1] = place - low;
  }
  return taps;
}

PixelRect MaskArea(float x1, float y1, float x2, float y2, int picture_height,
                   int picture_width) {
  // A difference is not finite if a coordinate is not finite or if the
  // subtraction overflows.
  if (!(x2 > x1 && y2 > y1 && std::isfinite(x2 - x1) &&
        std::isfinite(y2 - y1))) {
    return {};
  }
  const PixelRect area = {Clamp(std::floor(x1) - 1, picture_width),
                          Clamp(std::floor(y1) - 1, picture_height),
                          Clamp(std::ceil(x2) + 1, picture_width),
                          Clamp(std::ceil(y2) + 1, picture_height)};
  const bool empty = area.width() <= 0 || area.height() <= 0;
  return empty ? PixelRect() : area;
}

void MaskPasteScalar(const MaskPasteArgs& args, const ResizeTaps& columns,
                     const ResizeTaps& rows) {
  uint8_t* out = args.out;
  for (int y = 0; y < args.area.height(); ++y) {
    const float* high = args.mask + rows.index[2 * y] * args.side;
    const float* low = args.mask + rows.index[2 * y + 1] * args.side;
    for (int x = 0; x < args.area.width(); ++x) {
      const int left = columns.index[2 * x], right = columns.index[2 * x + 1];
      const float left_weight = columns.weight[2 * x];
      const float right_weight = columns.weight[2 * x + 1];
      const float value =
          rows.weight[2 * y] *
              (left_weight * high[left] + right_weight * high[right]) +
          rows.weight[2 * y + 1] *
              (left_weight * low[left] + right_weight * low[right]);
      *out++ = value >= args.threshold ? 1 : 0;
    }
  }
}

void MaskPasteCpu(const MaskPasteArgs& args, CpuIsa isa) {
  const ResizeTaps columns =
      PasteTaps(args.x1, args.x2, args.side, args.area.left, args.area.width());
  const ResizeTaps rows =
      PasteTaps(args.y1, args.y2, args.side, args.area.top, args.area.height());
  switch (isa) {
    case CpuIsa::kScalar:
      return MaskPasteScalar(args, columns, rows);
    case CpuIsa::kAvx2:
      return MaskPasteAvx2(args, columns, rows);
    case CpuIsa::kAvx512:
      return MaskPasteAvx512(args, columns, rows);
  }
}

}  // namespace sfmamba::kernels
