#include "absl/base/attributes.h"
#include "model/engine/device_runtime.h"

namespace sfmamba::engine {

// This function is weak, so that tests on the emulator can define their own.
ABSL_ATTRIBUTE_WEAK const DeviceRuntime* Devices() { return nullptr; }

}  // namespace sfmamba::engine
