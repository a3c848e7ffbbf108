#include "tests/gpu/model_device.h"

namespace sfmamba {

bool HasModelDevice() { return true; }

model::ModelOptions OnModelDevice() {
  model::ModelOptions options;
  options.gpus = {0};
  return options;
}

}  // namespace sfmamba
