#ifndef SFMAMBA_KERNELS_SEGMENTATION_SEGMENTATION_ARGMAX_CUDA_H_
#define SFMAMBA_KERNELS_SEGMENTATION_SEGMENTATION_ARGMAX_CUDA_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// SegmentationArgmaxArgs with logits of type T: float, BFloat16 or Float16. All
// pointers are device pointers.
template <typename T>
struct SegmentationArgmaxCudaArgs {
  const T* logits;             // [height, width, classes]
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
  void* scratch;  // SegmentationArgmaxCudaScratchBytes(), 16-byte aligned
};

size_t SegmentationArgmaxCudaScratchBytes(int out_height, int out_width);

// Labels and areas are equal to those of SegmentationArgmaxScalar() for the
// same logits in fp32. Confidences may differ by rounding. A pixel's output
// bits depend only on the logits that it is interpolated from.
//
// Enqueues on `stream` and returns. INTERNAL if a launch is refused.
template <typename T>
absl::Status SegmentationArgmaxCuda(const SegmentationArgmaxCudaArgs<T>& args,
                                    CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEGMENTATION_SEGMENTATION_ARGMAX_CUDA_H_
