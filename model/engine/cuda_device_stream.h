#ifndef SFMAMBA_MODEL_ENGINE_CUDA_DEVICE_STREAM_H_
#define SFMAMBA_MODEL_ENGINE_CUDA_DEVICE_STREAM_H_

#include <functional>
#include <memory>

#include "ATen/core/Tensor.h"
#include "ATen/cuda/CUDAEvent.h"
#include "ATen/cuda/CUDAGraph.h"
#include "model/engine/cuda_own_stream.h"
#include "model/engine/device_stream.h"

namespace sfmamba::engine {

// A DeviceStream on a GPU. It has three CUDA streams: for copies to the GPU,
// for work and for copies back. Events synchronise them. So the copies of one
// batch overlap with the work of another DeviceStream.
class CudaDeviceStream : public DeviceStream {
 public:
  explicit CudaDeviceStream(c10::DeviceIndex gpu);
  // Frees the GPU memory that libtorch caches for these streams.
  ~CudaDeviceStream() override;

  std::unique_ptr<Scope> Enter() override;
  at::Tensor AllocateHost(int64_t size, at::ScalarType type) override;
  at::Tensor AllocateDevice(int64_t size, at::ScalarType type) override;
  void CopyIn(const void* host, void* device, int64_t bytes) override;
  void EndCopyIn() override;
  void CopyOut(const at::Tensor& device, const at::Tensor& host) override;
  void Wait() override;
  absl::Duration ComputeTime() override;
  absl::StatusOr<std::unique_ptr<DeviceGraph>> Record(
      const at::Tensor& input,
      const std::function<at::Tensor(const at::Tensor&)>& enqueue) override;
  absl::Status Check() override;

 private:
  const c10::DeviceIndex gpu_;
  const CudaOwnStream copy_in_, compute_, copy_out_;
  at::cuda::CUDAEvent copied_in_;
  // A thread that waits for this event sleeps, so that its processor can decode
  // meanwhile. By default it would spin until the batch is done.
  at::cuda::CUDAEvent copied_out_{cudaEventDisableTiming |
                                  cudaEventBlockingSync};
  // Recorded before and after the work, with timestamps.
  at::cuda::CUDAEvent started_{cudaEventDefault}, computed_{cudaEventDefault};
  // The memory pool of all graphs, which can share it because only one graph
  // runs at a time. The pool is destroyed with the last graph, because libtorch
  // cannot reuse a pool whose graphs are gone.
  std::weak_ptr<const at::cuda::MempoolId_t> graph_memory_;
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_CUDA_DEVICE_STREAM_H_
