#ifndef SFMAMBA_KERNELS_VISION_CONV3X3_AFTER_RESIZE_H_
#define SFMAMBA_KERNELS_VISION_CONV3X3_AFTER_RESIZE_H_

#include "kernels/simd/cpu_features.h"
#include "kernels/vision/resize_taps.h"

namespace sfmamba::kernels {

// Adds to y what a 3x3 convolution with padding 1 makes of a smaller map that
// is resized to y's size first, given what each of the convolution's taps makes
// of each pixel before the resize. A resize is linear and treats channels
// alike, so it may come after the taps' products; on the smaller map these are
// as many times fewer as it is smaller:
//   y[r, c] += sum over i, j < 3 of resized(taps[3i + j])[r + i - 1, c + j - 1]
// where places outside of y's size count 0. The resize is that of
// kernels/vision/resize_taps.h.
struct Conv3x3AfterResizeArgs {
  const float* taps;  // [in_height, in_width, 9, channels]
  int in_height, in_width, channels;
  float* y;  // [height, width, channels]
  int height, width;
  int row_begin, row_end;  // Of y, which are written: shares of the work.
};

// Runs on the calling thread.
void Conv3x3AfterResizeCpu(const Conv3x3AfterResizeArgs& args,
                           CpuIsa isa = ActiveCpuIsa());

// Channels that are worked on together, so that a row of theirs stays in cache.
constexpr int kResizedConv3x3Block = 128;

// Conv3x3AfterResizeCpu chooses among these, one per instruction set. `rows`
// and `columns` resize the map to y's size; `scratch` is of 3 * in_width *
// kResizedConv3x3Block.
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

#endif  // SFMAMBA_KERNELS_VISION_CONV3X3_AFTER_RESIZE_H_
