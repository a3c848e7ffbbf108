#include "tests/gpu/model_device.h"
#include "tests/kernels/cuda/device_memory.h"

namespace sfmamba {

bool HasModelDevice() { return kernels::HasDevice(); }

model::ModelOptions OnModelDevice() {
  model::ModelOptions options;
  options.gpus = {0};
  return options;
}

}  // namespace sfmamba
