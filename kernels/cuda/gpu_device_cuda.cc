#include <cuda_runtime_api.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/gpu_device.h"

namespace sfmamba::kernels {

absl::StatusOr<GpuDevice> DescribeGpu(int gpu) {
  cudaDeviceProp properties;
  int khz = 0;
  cudaError_t error = cudaGetDeviceProperties(&properties, gpu);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, gpu);
  }
  if (error != cudaSuccess) {
    return CudaStatus(error, absl::StrCat("GPU ", gpu));
  }
  GpuDevice device;
  device.name = properties.name;
  device.multiprocessors = properties.multiProcessorCount;
  device.clock_hz = khz * 1e3;
  const bool is_a100 = properties.major == 8 && properties.minor == 0;
  device.fp32_per_clock = is_a100 ? 64 : 128;
  return device;
}

absl::Status SelectGpu(int gpu) {
  return CudaStatus(cudaSetDevice(gpu),
                    absl::StrCat("GPU ", gpu, ": cudaSetDevice"));
}

void ForgetGpuError() { cudaGetLastError(); }

absl::Status CopyOnGpu(void* to, const void* from, size_t bytes,
                       CudaStream stream) {
  return CudaStatus(
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
      "cudaMemcpyAsync");
}

GpuBuffer::~GpuBuffer() { cudaFree(data_); }

absl::Status GpuBuffer::Resize(size_t bytes) {
  cudaFree(data_);
  data_ = nullptr;
  bytes_ = 0;
  const absl::Status status =
      CudaStatus(cudaMalloc(&data_, bytes), absl::StrCat(bytes, " bytes"));
  if (status.ok()) bytes_ = bytes;
  return status;
}

absl::Status GpuBuffer::Fill(const void* host, size_t bytes) {
  size_t filled = std::min(bytes, bytes_);
  absl::Status status = CudaStatus(
      cudaMemcpy(data_, host, filled, cudaMemcpyHostToDevice), "cudaMemcpy");
  while (status.ok() && filled < bytes_) {
    const size_t more = std::min(filled, bytes_ - filled);
    status = CudaStatus(cudaMemcpy(static_cast<char*>(data_) + filled, data_,
                                   more, cudaMemcpyDeviceToDevice),
                        "cudaMemcpy");
    filled += more;
  }
  return status;
}

}  // namespace sfmamba::kernels
