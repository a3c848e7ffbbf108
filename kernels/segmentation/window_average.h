#ifndef SFMAMBA_KERNELS_SEGMENTATION_WINDOW_AVERAGE_H_
#define SFMAMBA_KERNELS_SEGMENTATION_WINDOW_AVERAGE_H_

#include "kernels/pixels/resize_taps.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// Computes the mean of the logits of overlapping windows, for one row of a
// picture. The logits of each window are resized to the size of the window.
// They are then summed for each pixel, in the order of the windows, and divided
// by the number of windows that cover the pixel.
// Source: docs/heads.md, "Sliding windows"; mmsegmentation 1.2.2's mode
// "slide".
struct WindowAverageArgs {
  struct Window {
    const float* logits;  // [height, width, classes]
    int top, left;        // The window's position, in pixels of the picture.
  };
  // [count] windows of the same size. Each window must cover the row `row`.
  const Window* windows;
  int count;
  int width, classes;  // The size of each window's logits.
  // The resizes from the height and width of the logits to the height and width
  // of a window. They must have one or two taps, as returned by
  // ComposeResizes() for a single resize.
  const ResizeTaps* rows;
  const ResizeTaps* columns;
  int row;            // The row of the picture to compute.
  int picture_width;  // In pixels. Windows must cover all of them.
  float* average;     // [picture_width, classes], written
};

// Runs on the calling thread. Allocates memory for one row of a window's
// logits.
void WindowAverageCpu(const WindowAverageArgs& args,
                      CpuIsa isa = ActiveCpuIsa());

// WindowAverageCpu() calls one of these, depending on the instruction set. All
// compute the same values. `counts`, [picture_width], is the number of windows
// that cover each pixel. `scratch` must have room for width * classes floats.
void WindowAverageScalar(const WindowAverageArgs& args, const float* counts,
                         float* scratch);
void WindowAverageAvx2(const WindowAverageArgs& args, const float* counts,
                       float* scratch);
void WindowAverageAvx512(const WindowAverageArgs& args, const float* counts,
                         float* scratch);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEGMENTATION_WINDOW_AVERAGE_H_
