#ifndef SFMAMBA_KERNELS_CUDA_GPU_DEVICE_H_
#define SFMAMBA_KERNELS_CUDA_GPU_DEVICE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// Wrappers of the CUDA runtime calls that are needed to time kernels. They have
// two implementations: gpu_device_cuda.cc for GPUs, and the emulator for tests.

struct GpuDevice {
  std::string name;  // The name from the driver, such as "NVIDIA H200".
  int multiprocessors = 0;
  double clock_hz = 0;     // The multiprocessors' maximum clock rate.
  int fp32_per_clock = 0;  // Multiply-adds per multiprocessor and clock.
};

// Returns the properties of the device with index `gpu`, or INTERNAL if there
// is no such device.
absl::StatusOr<GpuDevice> DescribeGpu(int gpu);

// Makes the device with index `gpu` current in the calling thread.
absl::Status SelectGpu(int gpu);

// Clears the last CUDA error of the calling thread after a refused launch.
// Otherwise other libraries, such as libtorch, would report it as their error.
void ForgetGpuError();

// Enqueues a copy of `bytes` bytes between addresses in the memory of the
// current device.
absl::Status CopyOnGpu(void* to, const void* from, size_t bytes,
                       CudaStream stream);

// A buffer in GPU memory. Resize() allocates it on the current device.
class GpuBuffer {
 public:
  GpuBuffer() = default;
  ~GpuBuffer();
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;

  // Changes the size and discards the contents. If there is too little memory,
  // returns RESOURCE_EXHAUSTED, and the buffer is empty.
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
