#ifndef SFMAMBA_KERNELS_SEGMENTATION_SEGMENTATION_ARGMAX_H_
#define SFMAMBA_KERNELS_SEGMENTATION_SEGMENTATION_ARGMAX_H_

#include <cstdint>

#include "kernels/pixels/resize_taps.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// The last steps of a segmentation head in one pass. Resizes the logits to the
// size of the network's input and then to the size of the picture. Each pixel
// gets the class with the largest logit. If logits are equal, the class with
// the lowest number wins. A NaN never wins. If no logit is above minus
// infinity, class 0 wins.
//
// Both resizes are bilinear, as in kernels/pixels/resize_taps.h, and are
// composed into one resize. Rows are resized before columns. A resize between
// equal sizes is skipped. The memory needed is one row of width * classes
// floats.
// Source: docs/heads.md, "Class maps"; UperNet (arXiv 1807.10221).
struct SegmentationArgmaxArgs {
  const float* logits;         // [height, width, classes]
  int height, width, classes;  // classes <= 65535
  int input_height, input_width;
  int out_height, out_width;
  // The rows of the result to compute: [row_begin, row_end).
  int row_begin, row_end;
  // [out_height, out_width]. Only the rows [row_begin, row_end) are written.
  uint16_t* labels;
  // If not null, written with the shape of `labels`. Each value is 255 times
  // the softmax probability of the label, rounded to a whole number. It is 0 if
  // the probability is NaN.
  uint8_t* confidence;
  // [classes]. If not null, each element is increased by the number of pixels
  // with this label.
  int64_t* areas;
};

// Runs on the calling thread.
void SegmentationArgmaxCpu(const SegmentationArgmaxArgs& args,
                           CpuIsa isa = ActiveCpuIsa());

// Like the function above, but resizes the logits to the result by `rows` and
// `columns`. Ignores input_height and input_width.
void SegmentationArgmaxCpu(const SegmentationArgmaxArgs& args,
                           const ResizeTaps& rows, const ResizeTaps& columns,
                           CpuIsa isa = ActiveCpuIsa());

// SegmentationArgmaxCpu() calls one of the functions below, depending on the
// instruction set. All write the same labels, but confidences may differ by
// rounding. `rows` and `columns` resize the logits to the result. `row` is
// scratch memory of width * classes + kSegmentationRowPadding floats.
constexpr int kSegmentationRowPadding = 16;
void SegmentationArgmaxScalar(const SegmentationArgmaxArgs& args,
                              const ResizeTaps& rows, const ResizeTaps& columns,
                              float* row);
void SegmentationArgmaxAvx2(const SegmentationArgmaxArgs& args,
                            const ResizeTaps& rows, const ResizeTaps& columns,
                            float* row);
void SegmentationArgmaxAvx512(const SegmentationArgmaxArgs& args,
                              const ResizeTaps& rows, const ResizeTaps& columns,
                              float* row);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEGMENTATION_SEGMENTATION_ARGMAX_H_
