#include "model/device_ops.h"
#include "model/device_runtime.h"

namespace sfmamba {

const DeviceRuntime* Devices() { return nullptr; }

namespace ops {

const DeviceOps* DeviceOpsOf(const at::Tensor&) { return nullptr; }

}  // namespace ops
}  // namespace sfmamba
