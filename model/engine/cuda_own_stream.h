#ifndef SFMAMBA_MODEL_ENGINE_CUDA_OWN_STREAM_H_
#define SFMAMBA_MODEL_ENGINE_CUDA_OWN_STREAM_H_

#include <cuda_runtime_api.h>

#include "c10/cuda/CUDAException.h"
#include "c10/cuda/CUDAGuard.h"
#include "c10/cuda/CUDAStream.h"

namespace sfmamba::engine {

// A CUDA stream that no other code uses and that does not synchronise with the
// default stream. libtorch itself has only 32 streams per GPU, so many contexts
// would have to share them. A graph that one context captures could then
// contain the work of another context.
class CudaOwnStream {
 public:
  // Creates the stream. Throws c10::Error if this fails.
  explicit CudaOwnStream(c10::DeviceIndex gpu)
      : stream_(c10::cuda::getStreamFromExternal(Create(gpu), gpu)) {}
  // All work on the stream must be complete.
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
