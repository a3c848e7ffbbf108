#ifndef SFMAMBA_MODEL_TORCH_RUNTIME_H_
#define SFMAMBA_MODEL_TORCH_RUNTIME_H_

#include <string>

#include "absl/status/status.h"

namespace sfmamba::model {

// Returns the version of libtorch, such as "2.11.0".
std::string TorchVersion();

// Returns INVALID_ARGUMENT if the value of the environment variable
// SFMAMBA_CPU_ISA is not an instruction set. This variable limits which kernels
// are used.
absl::Status CheckEnvironment();

// Sets the number of threads that run a model's operators. May be called only
// before the first model is loaded.
void SetComputeThreads(int threads);

// From now on, operators that the calling thread runs use no other threads.
void ComputeAlone();

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_TORCH_RUNTIME_H_
