#ifndef SFMAMBA_KERNELS_CUDA_GPU_DEVICE_H_
#define SFMAMBA_KERNELS_CUDA_GPU_DEVICE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// What measurements ask of a CUDA device besides kernels. There are two
// implementations: gpu_device_cuda.cc, and the emulator's for tests.

struct GpuDevice {
  std::string name;  // As the driver gives it: "NVIDIA H200".
  int multiprocessors = 0;
  double clock_hz = 0;     // The highest of the multiprocessors.
  int fp32_per_clock = 0;  // Multiply-adds of a multiprocessor.
};

// INTERNAL if there is no device of this number.
absl::StatusOr<GpuDevice> DescribeGpu(int gpu);

// Makes the device current to the calling thread.
absl::Status SelectGpu(int gpu);

// The runtime forgets the error of a refused launch, which others on this
// thread, such as libtorch, would take for their own.
void ForgetGpuError();

// Enqueues a copy within the current device.
absl::Status CopyOnGpu(void* to, const void* from, size_t bytes,
                       CudaStream stream);

// Memory of the current device.
class GpuBuffer {
 public:
  GpuBuffer() = default;
  ~GpuBuffer();
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;

  // What it held before is lost. RESOURCE_EXHAUSTED if the memory is short.
  absl::Status Resize(size_t bytes);

  // Fills all of it with copies of the `bytes` at `host`, one behind the other.
  absl::Status Fill(const void* host, size_t bytes);

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_CUDA_GPU_DEVICE_H_
