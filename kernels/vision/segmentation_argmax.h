#ifndef SFMAMBA_KERNELS_VISION_SEGMENTATION_ARGMAX_H_
#define SFMAMBA_KERNELS_VISION_SEGMENTATION_ARGMAX_H_

#include <cstdint>

#include "kernels/simd/cpu_features.h"
#include "kernels/vision/resize_taps.h"

namespace sfmamba::kernels {

// The tail of a segmentation head in one pass: logits are resized to the
// network's input, the result again to the picture (each skipped where sizes
// are equal), and each pixel gets its best class; the lowest index wins a tie,
// a NaN never does; class 0 if none is above minus infinity. Both resizes are
// bilinear, as in kernels/vision/resize_taps.h, and are done as one: rows
// first, then columns. Memory is taken for one row only, width * classes
// floats. Source: docs/heads.md, "Class maps"; UperNet (arXiv 1807.10221).
struct SegmentationArgmaxArgs {
  const float* logits;         // [height, width, classes]
  int height, width, classes;  // classes <= 65535
  int input_height, input_width;
  int out_height, out_width;
  // Rows of the result to write: shares of the work.
  int row_begin, row_end;
  uint16_t* labels;  // [out_height, out_width]; rows in range are written
  // The same of 255 * softmax of the winner, rounded, 0 if that is no number;
  // null: none.
  uint8_t* confidence;
  int64_t* areas;  // [classes], to which pixels are added; null: none
};

// Runs on the calling thread.
void SegmentationArgmaxCpu(const SegmentationArgmaxArgs& args,
                           CpuIsa isa = ActiveCpuIsa());

// SegmentationArgmaxCpu chooses among these, one per instruction set; their
// labels are equal, their confidences differ by rounding. `rows` and `columns`
// are the resizes of each axis; `row` is scratch memory of width * classes and
// kSegmentationRowPadding floats.
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

#endif  // SFMAMBA_KERNELS_VISION_SEGMENTATION_ARGMAX_H_
