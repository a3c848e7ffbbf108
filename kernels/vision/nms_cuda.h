#ifndef SFMAMBA_KERNELS_VISION_NMS_CUDA_H_
#define SFMAMBA_KERNELS_VISION_NMS_CUDA_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// Non-maximum suppression as in kernels/vision/nms.h, of several images at
// once, each by itself. Boxes that are not to take part stay in place with a
// group below 0, so that nobody needs to count the others. All pointers are
// device pointers.
struct NmsCudaArgs {
  int num_images;
  int num_boxes;        // Of each image, at most kNmsCudaMaxBoxes.
  const float* boxes;   // [num_images, num_boxes, 4] x1, y1, x2, y2, all >= 0,
                        // finite; 16-byte aligned
  const float* scores;  // [num_images, num_boxes], finite
  const int32_t* groups;  // [num_images, num_boxes], below 0: not there; null:
                          // one group, no shift
  float iou_threshold;
  int max_kept;       // Of each image: the best so many.
  int32_t* kept;      // [num_images, min(max_kept, num_boxes)] indices into the
                      // image's boxes, best first, then -1; written
  int32_t* num_kept;  // [num_images], written
  void* scratch;      // NmsCudaScratchBytes(), 16-byte aligned
};

constexpr int kNmsCudaMaxBoxes = 1 << 17;

// Grows with the square of num_boxes: 3 MB an image at 4819, 51 MB at 20000.
size_t NmsCudaScratchBytes(int num_images, int num_boxes);

// Keeps what NmsScalar() keeps. Enqueues on `stream` and returns;
// INVALID_ARGUMENT for too many boxes, INTERNAL if a launch is refused.
absl::Status NmsCuda(const NmsCudaArgs& args, CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_VISION_NMS_CUDA_H_
