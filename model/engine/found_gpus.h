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

// Finds the GPUs that cannot run our kernels. These are GPUs of a compute
// capability below 8.0 (Ampere) and GPUs that the driver cannot describe.
// third_party/cuda/repository.bzl compiles for 8.0 and later.
model::FoundGpus SortOut(const std::vector<GpuProperties>& gpus);

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_FOUND_GPUS_H_
