#ifndef SFMAMBA_KERNELS_DETECTION_MASK_PASTE_H_
#define SFMAMBA_KERNELS_DETECTION_MASK_PASTE_H_

#include <cstdint>

#include "kernels/pixels/resize_taps.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// Pixels [left, right) x [top, bottom) of a picture.
struct PixelRect {
  int left = 0, top = 0, right = 0, bottom = 0;

  int width() const { return right - left; }
  int height() const { return bottom - top; }
};

// Pastes an instance's mask into its box in the picture. Pixel (x, y) samples
// the mask bilinearly at u = (x + 0.5 - x1) / (x2 - x1) * side - 0.5 (v
// likewise), where cells outside of the mask count as 0. It is set if the
// sample is >= threshold.
// Source: docs/heads.md, "Masks"; Mask R-CNN (arXiv 1703.06870).
struct MaskPasteArgs {
  const float* mask;  // [side, side] probabilities
  int side;
  float x1, y1, x2, y2;  // The box in the picture's pixels.
  float threshold;
  PixelRect area;  // The result of MaskArea().
  uint8_t* out;    // [area.height(), area.width()] 0 or 1, written
};

// Returns the pixels of a picture that a mask with this box can set:
// [floor(x1) - 1, ceil(x2) + 1) inside the picture, y likewise. Empty for a box
// that is outside the picture or not finite, or whose width or height is not
// positive.
PixelRect MaskArea(float x1, float y1, float x2, float y2, int picture_height,
                   int picture_width);

// Returns the two mask cells that each of `count` pixels from `first` on
// samples on one axis, and their weights. The box extends from `begin` to
// `end`. Cells outside the mask have weight 0.
ResizeTaps PasteTaps(float begin, float end, int side, int first, int count);

// Runs on the calling thread.
void MaskPasteCpu(const MaskPasteArgs& args, CpuIsa isa = ActiveCpuIsa());

// MaskPasteCpu chooses among these, one per instruction set. All set the same
// pixels. `columns` and `rows` hold the two mask cells and their weights for
// each column and row of the area.
void MaskPasteScalar(const MaskPasteArgs& args, const ResizeTaps& columns,
                     const ResizeTaps& rows);
void MaskPasteAvx2(const MaskPasteArgs& args, const ResizeTaps& columns,
                   const ResizeTaps& rows);
void MaskPasteAvx512(const MaskPasteArgs& args, const ResizeTaps& columns,
                     const ResizeTaps& rows);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_MASK_PASTE_H_
