#ifndef SFMAMBA_MODEL_ENGINE_TORCH_RUNTIME_H_
#define SFMAMBA_MODEL_ENGINE_TORCH_RUNTIME_H_

#include <string>

namespace sfmamba::engine {

// The version of libtorch, such as "2.11.0".
std::string TorchVersion();

// Threads that run one model's operators; before the first model is loaded.
void SetComputeThreads(int threads);

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_TORCH_RUNTIME_H_
