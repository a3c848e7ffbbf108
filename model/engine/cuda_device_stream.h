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

// A DeviceStream on a GPU: copies in, work and copies out each have a CUDA
// stream of their own, joined by events, so that one batch's copies overlap
// with another DeviceStream's work.
class CudaDeviceStream : public DeviceStream {
 public:
  explicit CudaDeviceStream(c10::DeviceIndex gpu);
  // Gives back to the GPU what libtorch keeps for these streams.
  ~CudaDeviceStream() override;

  std::unique_ptr<Scope> Enter() override;
  at::Tensor AllocateHost(int64_t size, at::ScalarType type) override;
  at::Tensor AllocateDevice(int64_t size, at::ScalarType type) override;
  void CopyIn(const at::Tensor& host, const at::Tensor& device) override;
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
  at::cuda::CUDAEvent copied_in_, copied_out_;
  // Around the work, with times.
  at::cuda::CUDAEvent started_{cudaEventDefault}, computed_{cudaEventDefault};
  // Shared by all graphs, of which one runs at a time. Gone with the last of
  // them: libtorch gives a pool that lost its graphs to no other.
  std::weak_ptr<const at::cuda::MempoolId_t> graph_memory_;
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_CUDA_DEVICE_STREAM_H_
