#ifndef SFMAMBA_MODEL_ENGINE_FOUND_GPUS_H_
#define SFMAMBA_MODEL_ENGINE_FOUND_GPUS_H_

#include <string>
#include <vector>

#include "model/gpus.h"

namespace sfmamba::engine {

// A GPU as its driver describes it.
struct GpuProperties {
  std::string name;
  int major = 0, minor = 0;  // The compute capability.
  std::string error;  // Why the driver cannot describe it; empty if it can.
};

// Sorts out the GPUs that cannot run our kernels: those of a compute capability
// below 8.0 (Ampere), the least that third_party/cuda/repository.bzl compiles
// for, and those that the driver cannot describe.
model::FoundGpus SortOut(const std::vector<GpuProperties>& gpus);

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_FOUND_GPUS_H_
