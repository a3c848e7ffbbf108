#ifndef SFMAMBA_KERNELS_DETECTION_NMS_CUDA_H_
#define SFMAMBA_KERNELS_DETECTION_NMS_CUDA_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// Non-maximum suppression as in kernels/detection/nms.h, for several images
// independently. Boxes with a group below 0 are ignored, so that the caller
// need not compact the others. All pointers are device pointers.
struct NmsCudaArgs {
  int num_images;
  int num_boxes;  // Boxes per image, at most kNmsCudaMaxBoxes.
  // [num_images, num_boxes, 4] x1, y1, x2, y2, all >= 0 and finite; 16-byte
  // aligned.
  const float* boxes;
  const float* scores;  // [num_images, num_boxes], finite
  // [num_images, num_boxes]; boxes below 0 are ignored. Null means that all
  // boxes are in one group, without a shift.
  const int32_t* groups;
  float iou_threshold;
  int max_kept;  // The most boxes to keep in each image.
  // [num_images, min(max_kept, num_boxes)], written: indices into the image's
  // boxes, best first, then -1.
  int32_t* kept;
  int32_t* num_kept;  // [num_images], written
  void* scratch;      // NmsCudaScratchBytes(), 16-byte aligned
};

constexpr int kNmsCudaMaxBoxes = 1 << 17;

// Returns the bytes of scratch memory, which grow with the square of num_boxes:
// 3 MB per image for 4819 boxes, 51 MB for 20000.
size_t NmsCudaScratchBytes(int num_images, int num_boxes);

// Keeps the same boxes as NmsScalar(). Enqueues on `stream` and returns.
// INVALID_ARGUMENT for too many boxes, INTERNAL if a launch is refused.
absl::Status NmsCuda(const NmsCudaArgs& args, CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_NMS_CUDA_H_
