#include "tests/model/emulated_device.h"

#include "model/cuda_ops.h"
#include "model/device_ops.h"

namespace sfmamba {
namespace {

// A test's switch, as DeviceOpsOf() is a function of the tensor alone.
bool emulating = false;

}  // namespace

EmulatedDevice::EmulatedDevice() { emulating = true; }
EmulatedDevice::~EmulatedDevice() { emulating = false; }

namespace ops {

// Linked before the build's own, which is left out.
const DeviceOps* DeviceOpsOf(const at::Tensor&) {
  static const auto& ops =
      *new CudaOps([](const at::Tensor&) -> CudaStream { return nullptr; });
  return emulating ? &ops : nullptr;
}

}  // namespace ops
}  // namespace sfmamba
