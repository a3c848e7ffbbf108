#ifndef SFMAMBA_KERNELS_CUDA_CUDA_STREAM_H_
#define SFMAMBA_KERNELS_CUDA_CUDA_STREAM_H_

struct CUstream_st;

namespace sfmamba::kernels {

// cudaStream_t, for headers that must not need CUDA.
using CudaStream = CUstream_st*;

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_CUDA_CUDA_STREAM_H_
