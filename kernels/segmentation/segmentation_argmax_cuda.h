#ifndef SFMAMBA_KERNELS_SEGMENTATION_SEGMENTATION_ARGMAX_CUDA_H_
#define SFMAMBA_KERNELS_SEGMENTATION_SEGMENTATION_ARGMAX_CUDA_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// Like SegmentationArgmaxArgs, but the logits have type T, which is float,
// BFloat16 or Float16. All pointers are device pointers.
template <typename T>
struct SegmentationArgmaxCudaArgs {
  const T* logits;             // [height, width, classes]
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
  // SegmentationArgmaxCudaScratchBytes() bytes, aligned to 16 bytes.
  void* scratch;
};

size_t SegmentationArgmaxCudaScratchBytes(int out_height, int out_width);

// Writes the same labels and areas as SegmentationArgmaxScalar() does for the
// same logits in fp32. Confidences may differ by rounding. A pixel's output
// bits depend only on the logits from which the pixel is interpolated.
//
// Enqueues the work on `stream` and does not wait for it. Returns INTERNAL if
// CUDA refuses a launch.
template <typename T>
absl::Status SegmentationArgmaxCuda(const SegmentationArgmaxCudaArgs<T>& args,
                                    CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEGMENTATION_SEGMENTATION_ARGMAX_CUDA_H_
