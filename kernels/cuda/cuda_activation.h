#ifndef SFMAMBA_KERNELS_CUDA_CUDA_ACTIVATION_H_
#define SFMAMBA_KERNELS_CUDA_CUDA_ACTIVATION_H_

namespace sfmamba::kernels {

// The function that a kernel applies to each value v of a convolution or a
// linear layer.
enum class CudaActivation {
  kNone,      // v
  kRelu,      // max(v, 0)
  kRelu6,     // min(max(v, 0), 6)
  kGeluErf,   // GeluErfCpu() of kernels/linear/gelu.h
  kGeluTanh,  // GeluTanhCpu() of kernels/linear/gelu.h
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_CUDA_CUDA_ACTIVATION_H_
