#ifndef SFMAMBA_TESTS_MODEL_EMULATED_DEVICE_H_
#define SFMAMBA_TESTS_MODEL_EMULATED_DEVICE_H_

namespace sfmamba {

// While one of these lives, the CPU's tensors count as a GPU's: layers that are
// made or run take the device's way, and the unmodified CUDA kernels run on the
// emulator. What cuBLAS and cuDNN would do libtorch does on the CPU. One at a
// time, on one thread.
class EmulatedDevice {
 public:
  EmulatedDevice();
  ~EmulatedDevice();
  EmulatedDevice(const EmulatedDevice&) = delete;
  EmulatedDevice& operator=(const EmulatedDevice&) = delete;
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_MODEL_EMULATED_DEVICE_H_
