#ifndef SFMAMBA_KERNELS_CUDA_GPU_DEVICE_H_
#define SFMAMBA_KERNELS_CUDA_GPU_DEVICE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// The CUDA runtime calls that timing kernels needs. There are two
// implementations: gpu_device_cuda.cc, and the emulator's for tests.

struct GpuDevice {
  std::string name;  // The driver's name of it, such as "NVIDIA H200".
  int multiprocessors = 0;
  double clock_hz = 0;     // The multiprocessors' maximum clock rate.
  int fp32_per_clock = 0;  // Multiply-adds per multiprocessor and clock.
};

// INTERNAL if no device has the index `gpu`.
absl::StatusOr<GpuDevice> DescribeGpu(int gpu);

// Makes the device current in the calling thread.
absl::Status SelectGpu(int gpu);

// Clears the calling thread's last CUDA error after a refused launch. Other
// libraries, such as libtorch, would otherwise report it as theirs.
void ForgetGpuError();

// Enqueues a copy within the current device.
absl::Status CopyOnGpu(void* to, const void* from, size_t bytes,
                       CudaStream stream);

// Owns memory of the device that is current when it is resized.
class GpuBuffer {
 public:
  GpuBuffer() = default;
  ~GpuBuffer();
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;

  // Discards the contents. RESOURCE_EXHAUSTED if there is too little memory.
  absl::Status Resize(size_t bytes);

  // Fills the buffer with consecutive copies of the `bytes` bytes at `host`.
  // The last copy may be cut short.
  absl::Status Fill(const void* host, size_t bytes);

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_CUDA_GPU_DEVICE_H_
