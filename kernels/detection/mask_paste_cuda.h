#ifndef SFMAMBA_KERNELS_DETECTION_MASK_PASTE_CUDA_H_
#define SFMAMBA_KERNELS_DETECTION_MASK_PASTE_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/detection/mask_paste.h"

namespace sfmamba::kernels {

// Pastes `count` masks and sets the same pixels as MaskPasteScalar(). The
// masks' outputs must not overlap. `masks`, [count], and all pointers in it are
// device pointers. Masks with an empty area are skipped.
//
// Enqueues on `stream` and returns. INTERNAL if the launch is refused.
absl::Status MaskPasteCuda(const MaskPasteArgs* masks, int count,
                           CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_MASK_PASTE_CUDA_H_
