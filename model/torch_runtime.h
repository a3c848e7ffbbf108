#ifndef SFMAMBA_MODEL_TORCH_RUNTIME_H_
#define SFMAMBA_MODEL_TORCH_RUNTIME_H_

#include <string>

#include "absl/status/status.h"

namespace sfmamba::model {

// Returns the version of libtorch, such as "2.11.0".
std::string TorchVersion();

// INVALID_ARGUMENT if the environment variable SFMAMBA_CPU_ISA, by which models
// choose their kernels, names no instruction set.
absl::Status CheckEnvironment();

// Sets the number of threads that run a model's operators. Must be called
// before the first model is loaded.
void SetComputeThreads(int threads);

// From now on the calling thread computes without the help of other threads.
void ComputeAlone();

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_TORCH_RUNTIME_H_
