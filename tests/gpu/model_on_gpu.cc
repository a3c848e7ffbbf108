#include "tests/cuda/device_memory.h"
#include "tests/gpu/model_device.h"

namespace sfmamba {

bool HasModelDevice() { return HasDevice(); }

ModelOptions OnModelDevice() {
  ModelOptions options;
  options.gpus = {0};
  return options;
}

}  // namespace sfmamba
