#include "tests/gpu/model_device.h"

namespace sfmamba {

bool HasModelDevice() { return true; }
model::ModelOptions OnModelDevice() { return {}; }

}  // namespace sfmamba
