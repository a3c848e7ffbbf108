#include "kernels/cuda/gpu_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace sfmamba::kernels {

// The properties are those that an H200 has.
absl::StatusOr<GpuDevice> DescribeGpu(int gpu) {
  if (gpu == 0) return GpuDevice{"emulator", 132, 1.98e9, 128};
  return absl::InternalError(absl::StrCat("GPU ", gpu, ": there is one, 0"));
}

absl::Status SelectGpu(int gpu) { return DescribeGpu(gpu).status(); }

void ForgetGpuError() {}

absl::Status CopyOnGpu(void* to, const void* from, size_t bytes,
                       CudaStream /*stream*/) {
  std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

GpuBuffer::~GpuBuffer() { std::free(data_); }

absl::Status GpuBuffer::Resize(size_t bytes) {
  constexpr size_t kAlignment = 256;
  std::free(data_);
  bytes_ = bytes;
  data_ = std::aligned_alloc(
      kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  return absl::OkStatus();
}

absl::Status GpuBuffer::Fill(const void* host, size_t bytes) {
  for (size_t filled = 0; filled < bytes_; filled += bytes) {
    std::memcpy(static_cast<char*>(data_) + filled, host,
                std::min(bytes, bytes_ - filled));
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::kernels
