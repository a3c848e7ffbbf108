#include "tests/kernels/cuda/device_memory.h"

#include <cstdlib>

namespace sfmamba {

bool Emulated() { return true; }
bool HasDevice() { return true; }
CudaStream TestStream() { return nullptr; }
void WaitForDevice() {}  // A launch returns when its grid has run.

void* AllocateDevice(size_t bytes) {
  constexpr size_t kAlignment = 256;
  return std::aligned_alloc(kAlignment,
                            (bytes + kAlignment - 1) / kAlignment * kAlignment);
}
void FreeDevice(void* memory) { std::free(memory); }
void CopyToDevice(void* device, const void* host, size_t bytes) {
  if (bytes > 0) std::memcpy(device, host, bytes);
}
void CopyToHost(void* host, const void* device, size_t bytes) {
  if (bytes > 0) std::memcpy(host, device, bytes);
}

}  // namespace sfmamba
