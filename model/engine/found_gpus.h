#ifndef SFMAMBA_MODEL_ENGINE_FOUND_GPUS_H_
#define SFMAMBA_MODEL_ENGINE_FOUND_GPUS_H_

#include <string>
#include <vector>

#include "model/gpus.h"

namespace sfmamba::engine {

// The properties of a GPU, as the driver reports them.
struct GpuProperties {
  std::string name;
  int major = 0, minor = 0;  // The compute capability.
  std::string error;         // The driver's error, or empty.
};

// Returns the GPUs, with the reason for each GPU that cannot run our kernels. A
// GPU needs a compute capability of 8.0 (Ampere) or more, for which
// third_party/cuda/repository.bzl compiles. The driver must be able to describe
// it.
model::FoundGpus SortOut(const std::vector<GpuProperties>& gpus);

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_FOUND_GPUS_H_
