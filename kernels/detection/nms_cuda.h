#ifndef SFMAMBA_KERNELS_DETECTION_NMS_CUDA_H_
#define SFMAMBA_KERNELS_DETECTION_NMS_CUDA_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// Non-maximum suppression as in kernels/detection/nms.h, for several images
// independently. Boxes with a negative group are ignored, so the caller need
// not remove such boxes from the arrays. All pointers are device pointers.
struct NmsCudaArgs {
  int num_images;
  int num_boxes;  // Boxes per image, at most kNmsCudaMaxBoxes.
  // [num_images, num_boxes, 4] x1, y1, x2, y2, all >= 0 and finite; 16-byte
  // aligned.
  const float* boxes;
  const float* scores;  // [num_images, num_boxes], finite
  // [num_images, num_boxes]. Boxes with a negative group are ignored. Null
  // means that all boxes of an image are in one group and are not shifted.
  const int32_t* groups;
  float iou_threshold;
  int max_kept;  // Keeps at most this many boxes of each image.
  // Written, [num_images, min(max_kept, num_boxes)]: the indices of each
  // image's kept boxes, best first. Unused elements are set to -1.
  int32_t* kept;
  int32_t* num_kept;  // Written, [num_images], the number of kept boxes.
  void* scratch;      // NmsCudaScratchBytes() bytes, aligned to 16 bytes.
};

constexpr int kNmsCudaMaxBoxes = 1 << 17;

// Returns the size of the scratch memory in bytes. It grows with the square of
// num_boxes. For example, an image needs 3 MB for 4819 boxes and 51 MB for
// 20000 boxes.
size_t NmsCudaScratchBytes(int num_images, int num_boxes);

// Keeps the same boxes as NmsScalar(). Enqueues the work on `stream` and does
// not wait for it. Returns INVALID_ARGUMENT if num_boxes is above
// kNmsCudaMaxBoxes, and INTERNAL if CUDA refuses a launch.
absl::Status NmsCuda(const NmsCudaArgs& args, CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_NMS_CUDA_H_
