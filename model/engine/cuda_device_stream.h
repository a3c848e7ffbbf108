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

// A DeviceStream on a GPU. It has three CUDA streams: one for copies to the
// GPU, one for work and one for copies back. Events synchronise them. Thus the
// copies of one DeviceStream overlap with the work of another.
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
  // A thread that waits for this event sleeps, so that its CPU can decode
  // pictures meanwhile. By default, the thread would spin until the batch is
  // done.
  at::cuda::CUDAEvent copied_out_{cudaEventDisableTiming |
                                  cudaEventBlockingSync};
  // These events are recorded before and after the work. They have timestamps.
  at::cuda::CUDAEvent started_{cudaEventDefault}, computed_{cudaEventDefault};
  // The memory pool of all graphs. The graphs can share it, because only one of
  // them runs at a time. The pool is destroyed with the last graph, because
  // libtorch cannot reuse a pool without graphs.
  std::weak_ptr<const at::cuda::MempoolId_t> graph_memory_;
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_CUDA_DEVICE_STREAM_H_
