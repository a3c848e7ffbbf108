#ifndef SFMAMBA_KERNELS_VISION_MASK_PASTE_CUDA_H_
#define SFMAMBA_KERNELS_VISION_MASK_PASTE_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/vision/mask_paste.h"

namespace sfmamba::kernels {

// Pastes `count` masks, each into bytes of its own, and sets the pixels that
// MaskPasteScalar() sets. `masks` [count] and all pointers in it are device
// pointers; an empty area is nothing to do.
//
// Enqueues on `stream` and returns; INTERNAL if the launch is refused.
absl::Status MaskPasteCuda(const MaskPasteArgs* masks, int count,
                           CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_VISION_MASK_PASTE_CUDA_H_
