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

// Pastes the mask of an object into the object's box in a picture. Samples the
// mask bilinearly for each pixel (x, y), at column u and row v:
//   u = (x + 0.5 - x1) / (x2 - x1) * side - 0.5
//   v = (y + 0.5 - y1) / (y2 - y1) * side - 0.5
// A cell is one value of the mask. Cells outside of the mask count as 0. The
// pixel is set if the sample is >= threshold.
// Source: docs/heads.md, "Masks"; Mask R-CNN (arXiv 1703.06870).
struct MaskPasteArgs {
  const float* mask;  // [side, side] probabilities
  int side;
  float x1, y1, x2, y2;  // The box, in pixels of the picture.
  float threshold;
  PixelRect area;  // The result of MaskArea().
  uint8_t* out;    // [area.height(), area.width()] 0 or 1, written
};

// Returns the part of a picture that a mask with this box can set. Its columns
// are [floor(x1) - 1, ceil(x2) + 1) and its rows are [floor(y1) - 1, ceil(y2) +
// 1), limited to the picture. The part is empty if the box is outside the
// picture, is not finite, or has a width or height <= 0.
PixelRect MaskArea(float x1, float y1, float x2, float y2, int picture_height,
                   int picture_width);

// Returns, for one axis, the two mask cells that each pixel samples and the
// weights of these cells. The pixels are first .. first + count - 1, and the
// box extends from `begin` to `end`. Cells outside the mask have weight 0.
ResizeTaps PasteTaps(float begin, float end, int side, int first, int count);

// Runs on the calling thread.
void MaskPasteCpu(const MaskPasteArgs& args, CpuIsa isa = ActiveCpuIsa());

// MaskPasteCpu() calls one of these, depending on the instruction set. All set
// the same pixels. `columns` and `rows` are the results of PasteTaps() for the
// columns and the rows of the area.
void MaskPasteScalar(const MaskPasteArgs& args, const ResizeTaps& columns,
                     const ResizeTaps& rows);
void MaskPasteAvx2(const MaskPasteArgs& args, const ResizeTaps& columns,
                   const ResizeTaps& rows);
void MaskPasteAvx512(const MaskPasteArgs& args, const ResizeTaps& columns,
                     const ResizeTaps& rows);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_MASK_PASTE_H_
