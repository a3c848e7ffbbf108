#ifndef SFMAMBA_KERNELS_CUDA_CUDA_STREAM_H_
#define SFMAMBA_KERNELS_CUDA_CUDA_STREAM_H_

struct CUstream_st;

namespace sfmamba::kernels {

// Another name of cudaStream_t, for headers that must not include CUDA headers.
using CudaStream = CUstream_st*;

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_CUDA_CUDA_STREAM_H_
