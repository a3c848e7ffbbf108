#ifndef SFMAMBA_TESTS_KERNELS_CUDA_DEVICE_MEMORY_H_
#define SFMAMBA_TESTS_KERNELS_CUDA_DEVICE_MEMORY_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// The device for tests of CUDA kernels. There are two implementations: one on
// the host emulator, and one on a GPU (in //tests/gpu:suite).

// Returns true on the emulator. It is slow, so shapes must be small there.
bool Emulated();

// Returns false if there is neither a GPU nor the emulator. The tests are then
// skipped.
bool HasDevice();

// Returns a stream of the device, always the same one. On the emulator, returns
// null.
CudaStream TestStream();

// Waits for TestStream(). Fails the test if a kernel failed.
void WaitForDevice();

void* AllocateDevice(size_t bytes);
void FreeDevice(void* memory);
void CopyToDevice(void* device, const void* host, size_t bytes);
void CopyToHost(void* host, const void* device, size_t bytes);

// An array on the device, 256-byte aligned, between guard bands.
template <typename T>
class DeviceArray {
 public:
  // Allocates `size` values and fills them with bytes 0xa5.
  explicit DeviceArray(size_t size)
      : size_(size),
        memory_(AllocateDevice(2 * kGuard + bytes())),
        data_(reinterpret_cast<T*>(static_cast<char*>(memory_) + kGuard)) {
    const std::vector<uint8_t> pattern(2 * kGuard + bytes(), kPattern);
    CopyToDevice(memory_, pattern.data(), pattern.size());
  }
  explicit DeviceArray(const std::vector<T>& values)
      : DeviceArray(values.size()) {
    CopyToDevice(data_, values.data(), bytes());
  }
  ~DeviceArray() { FreeDevice(memory_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  size_t size() const { return size_; }

  std::vector<T> ToHost() const {
    WaitForDevice();
    std::vector<T> values(size_);
    CopyToHost(values.data(), data_, bytes());
    return values;
  }

  // Returns true if all writes stayed inside the array.
  bool GuardsIntact() const {
    WaitForDevice();
    std::vector<uint8_t> all(2 * kGuard + bytes());
    CopyToHost(all.data(), memory_, all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const bool inside = i >= kGuard && i < kGuard + bytes();
      if (!inside && all[i] != kPattern) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 1024;
  static constexpr uint8_t kPattern = 0xa5;

  size_t bytes() const { return size_ * sizeof(T); }

  const size_t size_;
  void* const memory_;
  T* const data_;
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_CUDA_DEVICE_MEMORY_H_
