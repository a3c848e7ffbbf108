#ifndef SFMAMBA_KERNELS_PIXELS_CUDA_IMAGE_H_
#define SFMAMBA_KERNELS_PIXELS_CUDA_IMAGE_H_

#include <cstdint>

namespace sfmamba::kernels {

// An image in device memory.
struct CudaImage {
  const uint8_t* rgb;  // [height, width, 3] or [3, height, width], contiguous
  int height, width;
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PIXELS_CUDA_IMAGE_H_
