#ifndef SFMAMBA_MODEL_ENGINE_CUDA_OWN_STREAM_H_
#define SFMAMBA_MODEL_ENGINE_CUDA_OWN_STREAM_H_

#include <cuda_runtime_api.h>

#include "c10/cuda/CUDAException.h"
#include "c10/cuda/CUDAGuard.h"
#include "c10/cuda/CUDAStream.h"

namespace sfmamba::engine {

// A stream that nobody else has and that does not wait for the default one.
// libtorch's own pool has 32 for each GPU and hands them out again and again:
// with some more slots, what one of them enqueues would get into a graph that
// another records.
class CudaOwnStream {
 public:
  // Throws c10::Error.
  explicit CudaOwnStream(c10::DeviceIndex gpu)
      : stream_(c10::cuda::getStreamFromExternal(Create(gpu), gpu)) {}
  // Nothing may be on its way through it.
  ~CudaOwnStream() { cudaStreamDestroy(stream_.stream()); }
  CudaOwnStream(const CudaOwnStream&) = delete;
  CudaOwnStream& operator=(const CudaOwnStream&) = delete;

  c10::cuda::CUDAStream get() const { return stream_; }

 private:
  static cudaStream_t Create(c10::DeviceIndex gpu) {
    const c10::cuda::CUDAGuard device(gpu);
    cudaStream_t stream = nullptr;
    C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
  }

  const c10::cuda::CUDAStream stream_;
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_CUDA_OWN_STREAM_H_
