#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

#include "gtest/gtest.h"
#include "tests/kernels/cuda/device_memory.h"

namespace sfmamba {
namespace {

void DieUnlessOk(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::abort();
}

}  // namespace

bool kernels::Emulated() { return false; }

bool kernels::HasDevice() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

// Returns the default stream. The copies below wait until the work on this
// stream has ended.
kernels::CudaStream kernels::TestStream() { return nullptr; }

void kernels::WaitForDevice() {
  const cudaError_t error = cudaDeviceSynchronize();
  EXPECT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
}

void* kernels::AllocateDevice(size_t bytes) {
  void* memory = nullptr;
  DieUnlessOk(cudaMalloc(&memory, bytes), "cudaMalloc");
  return memory;
}

void kernels::FreeDevice(void* memory) {
  DieUnlessOk(cudaFree(memory), "cudaFree");
}

void kernels::CopyToDevice(void* device, const void* host, size_t bytes) {
  DieUnlessOk(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice),
              "cudaMemcpy to the device");
}

void kernels::CopyToHost(void* host, const void* device, size_t bytes) {
  DieUnlessOk(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost),
              "cudaMemcpy to the host");
}

}  // namespace sfmamba
