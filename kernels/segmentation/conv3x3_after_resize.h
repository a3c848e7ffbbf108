#ifndef SFMAMBA_KERNELS_SEGMENTATION_CONV3X3_AFTER_RESIZE_H_
#define SFMAMBA_KERNELS_SEGMENTATION_CONV3X3_AFTER_RESIZE_H_

#include "kernels/pixels/resize_taps.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// Resizes a small map to the size of y, convolves the resized map (3x3, padding
// 1) and adds the result to y. The weights are applied before the resize. The
// caller first multiplies each pixel of the small map by the weights of each of
// the nine taps. Conv3x3AfterResizeCpu() then resizes these products and adds
// them to y. The result is the same, because a resize is linear and treats all
// channels alike. This order is faster, because the small map has fewer pixels
// to multiply.
//   y[r, c] += sum over i, j < 3 of resized(taps[3i + j])[r + i - 1, c + j - 1]
// Positions outside of the resized map count as 0. The resize is defined in
// kernels/pixels/resize_taps.h.
struct Conv3x3AfterResizeArgs {
  const float* taps;  // [in_height, in_width, 9, channels], the products
  int in_height, in_width, channels;
  float* y;  // [height, width, channels], where the sums are added.
  int height, width;
  int row_begin, row_end;  // The rows of y to compute.
};

// Runs on the calling thread.
void Conv3x3AfterResizeCpu(const Conv3x3AfterResizeArgs& args,
                           CpuIsa isa = ActiveCpuIsa());

// The number of channels that are processed together, so that their rows stay
// in the cache.
constexpr int kResizedConv3x3Block = 128;

// Conv3x3AfterResizeCpu() calls one of these, depending on the instruction set.
// `rows` and `columns` resize the small map to the size of y. `scratch` must
// have room for 3 * in_width * kResizedConv3x3Block floats.
void Conv3x3AfterResizeScalar(const Conv3x3AfterResizeArgs& args,
                              const ResizeTaps& rows, const ResizeTaps& columns,
                              float* scratch);
void Conv3x3AfterResizeAvx2(const Conv3x3AfterResizeArgs& args,
                            const ResizeTaps& rows, const ResizeTaps& columns,
                            float* scratch);
void Conv3x3AfterResizeAvx512(const Conv3x3AfterResizeArgs& args,
                              const ResizeTaps& rows, const ResizeTaps& columns,
                              float* scratch);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEGMENTATION_CONV3X3_AFTER_RESIZE_H_
