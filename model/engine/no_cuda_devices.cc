#include "absl/base/attributes.h"
#include "model/engine/device_runtime.h"
#include "model/ops/device_ops.h"

namespace sfmamba {
namespace engine {

// Weak, here and below: tests on the emulator have their own.
ABSL_ATTRIBUTE_WEAK const DeviceRuntime* Devices() { return nullptr; }

}  // namespace engine

namespace ops {

ABSL_ATTRIBUTE_WEAK const DeviceOps* DeviceOpsOf(const at::Tensor&) {
  return nullptr;
}

}  // namespace ops
}  // namespace sfmamba
