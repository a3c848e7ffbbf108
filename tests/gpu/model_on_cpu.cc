#include "tests/gpu/model_device.h"

namespace sfmamba {

bool HasModelDevice() { return true; }
ModelOptions OnModelDevice() { return {}; }

}  // namespace sfmamba
