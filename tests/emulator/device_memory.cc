#include "tests/kernels/cuda/device_memory.h"

#include <cstdlib>

namespace sfmamba {

bool kernels::Emulated() { return true; }
bool kernels::HasDevice() { return true; }
kernels::CudaStream kernels::TestStream() { return nullptr; }
// Launches return only when their grid has run.
void kernels::WaitForDevice() {}

void* kernels::AllocateDevice(size_t bytes) {
  constexpr size_t kAlignment = 256;
  return std::aligned_alloc(kAlignment,
                            (bytes + kAlignment - 1) / kAlignment * kAlignment);
}
void kernels::FreeDevice(void* memory) { std::free(memory); }
void kernels::CopyToDevice(void* device, const void* host, size_t bytes) {
  if (bytes > 0) std::memcpy(device, host, bytes);
}
void kernels::CopyToHost(void* host, const void* device, size_t bytes) {
  if (bytes > 0) std::memcpy(host, device, bytes);
}

}  // namespace sfmamba
