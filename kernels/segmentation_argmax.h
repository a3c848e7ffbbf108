#ifndef SFMAMBA_KERNELS_SEGMENTATION_ARGMAX_H_
#define SFMAMBA_KERNELS_SEGMENTATION_ARGMAX_H_

#include <cstdint>

#include "kernels/cpu_features.h"

namespace sfmamba {

// The tail of a segmentation head in one pass: logits are resized to the
// network's input, the result again to the picture (each skipped where sizes
// are equal), and each pixel gets its best class; the lowest index wins a tie,
// a NaN never does. Both resizes are bilinear with half-pixel centres: source =
// max((dst + 0.5) * in / out - 0.5, 0), neighbours clamped. The resized logits
// are never in memory as a whole. Source: heads.md, 13, of the specification;
// UperNet (arXiv 1807.10221).
struct SegmentationArgmaxArgs {
  const float* logits;         // [height, width, classes]
  int height, width, classes;  // classes <= 65535
  int input_height, input_width;
  int out_height, out_width;
  // Rows of the result to write: shares of the work.
  int row_begin, row_end;
  uint16_t* labels;     // [out_height, out_width]; rows in range are written
  uint8_t* confidence;  // The same of 255 * softmax of the winner; null: none
  int64_t* areas;       // [classes], to which pixels are added; null: none
};

// Runs on the calling thread.
void SegmentationArgmaxCpu(const SegmentationArgmaxArgs& args,
                           CpuIsa isa = ActiveCpuIsa());

// SegmentationArgmaxCpu chooses among these, one per instruction set.
void SegmentationArgmaxScalar(const SegmentationArgmaxArgs& args);
void SegmentationArgmaxAvx2(const SegmentationArgmaxArgs& args);
void SegmentationArgmaxAvx512(const SegmentationArgmaxArgs& args);

}  // namespace sfmamba

#endif  // SFMAMBA_KERNELS_SEGMENTATION_ARGMAX_H_
