#ifndef SFMAMBA_TESTS_TESTING_WEIGHTS_H_
#define SFMAMBA_TESTS_TESTING_WEIGHTS_H_

#include <map>
#include <string>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "model/config.h"

namespace sfmamba {

// Returns every tensor of a model with this configuration, with deterministic
// parameters. Aborts if the configuration is invalid.
std::map<std::string, at::Tensor> DeterministicWeights(
    const model::ModelConfig& config);

// Writes a safetensors file that VisionModel::Load reads. The tensors are fp32,
// fp16, bf16, fp64 or int64.
absl::Status WriteWeights(const std::string& path,
                          const std::map<std::string, at::Tensor>& weights);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_TESTING_WEIGHTS_H_
