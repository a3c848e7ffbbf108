#ifndef SFMAMBA_KERNELS_SEGMENTATION_SEGMENTATION_ARGMAX_H_
#define SFMAMBA_KERNELS_SEGMENTATION_SEGMENTATION_ARGMAX_H_

#include <cstdint>

#include "kernels/pixels/resize_taps.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// The end of a segmentation head in one pass. Logits are resized to the size of
// the network's input and then to that of the picture, and each pixel gets the
// class with the largest logit. Of equal logits the lowest class wins; a NaN
// never wins; class 0 wins if no logit is above minus infinity.
//
// Both resizes are bilinear, as in kernels/pixels/resize_taps.h, and are
// composed into one; rows are resized before columns. A resize between equal
// sizes is skipped. The memory needed is that of one row, width * classes
// floats. Source: docs/heads.md, "Class maps"; UperNet (arXiv
// 1807.10221).
struct SegmentationArgmaxArgs {
  const float* logits;         // [height, width, classes]
  int height, width, classes;  // classes <= 65535
  int input_height, input_width;
  int out_height, out_width;
  // The rows of the result to compute: [row_begin, row_end).
  int row_begin, row_end;
  uint16_t* labels;  // [out_height, out_width]; only those rows are written
  // 255 times the softmax probability of the label, rounded, or 0 if that is
  // NaN; of the same shape as `labels`, or null for none.
  uint8_t* confidence;
  // [classes], or null for none: the number of pixels with each label is added.
  int64_t* areas;
};

// Runs on the calling thread.
void SegmentationArgmaxCpu(const SegmentationArgmaxArgs& args,
                           CpuIsa isa = ActiveCpuIsa());

// SegmentationArgmaxCpu() with other resizes than those between its sizes:
// `rows` and `columns` take the logits to the result. The input's size is not
// looked at.
void SegmentationArgmaxCpu(const SegmentationArgmaxArgs& args,
                           const ResizeTaps& rows, const ResizeTaps& columns,
                           CpuIsa isa = ActiveCpuIsa());

// SegmentationArgmaxCpu chooses among these, one per instruction set. Their
// labels are equal, their confidences may differ by rounding. `rows` and
// `columns` are the composed resizes of each axis. `row` is scratch memory of
// width * classes + kSegmentationRowPadding floats.
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
