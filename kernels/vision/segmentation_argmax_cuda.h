#ifndef SFMAMBA_KERNELS_VISION_SEGMENTATION_ARGMAX_CUDA_H_
#define SFMAMBA_KERNELS_VISION_SEGMENTATION_ARGMAX_CUDA_H_

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
  // Rows of the result to write.
  int row_begin, row_end;
  uint16_t* labels;  // [out_height, out_width]; rows in range are written
  // The same of 255 * softmax of the winner, rounded, 0 if that is no number;
  // null: none.
  uint8_t* confidence;
  int64_t* areas;  // [classes], to which pixels are added; null: none
  void* scratch;   // SegmentationArgmaxCudaScratchBytes(), 16-byte aligned
};

size_t SegmentationArgmaxCudaScratchBytes(int out_height, int out_width);

// The labels and areas are those that SegmentationArgmaxScalar() gives for the
// same logits in fp32; confidences differ by rounding. A pixel's bits depend on
// nothing but its neighbours' logits.
//
// Enqueues on `stream` and returns; INTERNAL if a launch is refused.
template <typename T>
absl::Status SegmentationArgmaxCuda(const SegmentationArgmaxCudaArgs<T>& args,
                                    CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_VISION_SEGMENTATION_ARGMAX_CUDA_H_
