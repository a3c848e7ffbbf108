#ifndef SFMAMBA_KERNELS_SEGMENTATION_WINDOW_AVERAGE_H_
#define SFMAMBA_KERNELS_SEGMENTATION_WINDOW_AVERAGE_H_

#include "kernels/pixels/resize_taps.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// One row of the mean of overlapping windows' logits. Each window's logits are
// resized to the window; a pixel gets their sum, in the order of the windows,
// divided by the number of windows that cover it. Source: docs/heads.md,
// "Sliding windows"; mmsegmentation 1.2.2's mode "slide".
struct WindowAverageArgs {
  struct Window {
    const float* logits;  // [height, width, classes]
    int top, left;        // The window's place, in pixels of the picture.
  };
  // All of one size; each of them covers `row`.
  const Window* windows;
  int count;
  int width, classes;  // The size of their logits.
  // The resizes from the logits' height and width to the window's, as
  // ComposeResizes() gives them for one resize: of one or two taps.
  const ResizeTaps* rows;
  const ResizeTaps* columns;
  int row;            // The row of the picture to compute.
  int picture_width;  // In pixels, each of which some window covers.
  float* average;     // [picture_width, classes], written
};

// Runs on the calling thread. Takes memory for a row of one window's logits.
void WindowAverageCpu(const WindowAverageArgs& args,
                      CpuIsa isa = ActiveCpuIsa());

// WindowAverageCpu chooses among these, one per instruction set. All give the
// same values. `counts` [picture_width] has the number of windows that cover
// each pixel, and `scratch` room for width * classes floats.
void WindowAverageScalar(const WindowAverageArgs& args, const float* counts,
                         float* scratch);
void WindowAverageAvx2(const WindowAverageArgs& args, const float* counts,
                       float* scratch);
void WindowAverageAvx512(const WindowAverageArgs& args, const float* counts,
                         float* scratch);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEGMENTATION_WINDOW_AVERAGE_H_
