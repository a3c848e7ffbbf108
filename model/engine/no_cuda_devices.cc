#include "absl/base/attributes.h"
#include "model/engine/device_runtime.h"
#include "model/ops/device_ops.h"

namespace sfmamba {
namespace engine {

// This function and DeviceOpsOf() are weak so that tests on the emulator can
// define their own.
ABSL_ATTRIBUTE_WEAK const DeviceRuntime* Devices() { return nullptr; }

}  // namespace engine

namespace ops {

ABSL_ATTRIBUTE_WEAK const DeviceOps* DeviceOpsOf(const at::Tensor&) {
  return nullptr;
}

}  // namespace ops
}  // namespace sfmamba
