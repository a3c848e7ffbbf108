#ifndef SFMAMBA_KERNELS_CUDA_CUDA_ACTIVATION_H_
#define SFMAMBA_KERNELS_CUDA_CUDA_ACTIVATION_H_

namespace sfmamba::kernels {

// What a kernel applies to each value v of a convolution or a linear layer.
enum class CudaActivation {
  kNone,     // v
  kRelu,     // 0 below 0
  kRelu6,    // 0 below 0, 6 above 6
  kGeluErf,  // The two forms of kernels/linear/gelu.h.
  kGeluTanh,
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_CUDA_CUDA_ACTIVATION_H_
