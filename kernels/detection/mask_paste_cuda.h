#ifndef SFMAMBA_KERNELS_DETECTION_MASK_PASTE_CUDA_H_
#define SFMAMBA_KERNELS_DETECTION_MASK_PASTE_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/detection/mask_paste.h"

namespace sfmamba::kernels {

// Pastes `count` masks and sets the same pixels as MaskPasteScalar(). The
// masks' outputs must not overlap. `masks` has `count` elements. `masks` and
// all pointers in its elements are device pointers. Masks with an empty area
// are skipped.
//
// Enqueues the work on `stream` and does not wait for it. Returns INTERNAL if
// CUDA refuses the launch.
absl::Status MaskPasteCuda(const MaskPasteArgs* masks, int count,
                           CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_MASK_PASTE_CUDA_H_
