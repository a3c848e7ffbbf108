#ifndef SFMAMBA_KERNELS_PYTHON_NVCC_SIMT_SIMT_H_
#define SFMAMBA_KERNELS_PYTHON_NVCC_SIMT_SIMT_H_

#include <string>
#include <utility>

#include "kernels/cuda/cuda_stream.h"
#include "kernels/cuda/nvcc/simt/device.h"

// Replaces kernels/cuda/nvcc/simt/simt.h in the Python package, which setup.py
// compiles without Abseil.
namespace sfmamba::simt {

// Replaces absl::Status. The message is empty if the kernel was enqueued.
class LaunchStatus {
 public:
  explicit LaunchStatus(std::string message) : message_(std::move(message)) {}
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

template <typename... Parameters, typename... Args>
LaunchStatus Launch(const char* name, void (*kernel)(Parameters...),
                    dim3 blocks, dim3 threads, kernels::CudaStream stream,
                    Args&&... args) {
  const cudaError_t error =
      Enqueue(kernel, blocks, threads, stream, std::forward<Args>(args)...);
  if (error == cudaSuccess) return LaunchStatus("");
  return LaunchStatus(std::string(name) + ": " + cudaGetErrorString(error));
}

}  // namespace sfmamba::simt

#endif  // SFMAMBA_KERNELS_PYTHON_NVCC_SIMT_SIMT_H_
