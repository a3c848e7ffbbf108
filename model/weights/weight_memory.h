#ifndef SFMAMBA_MODEL_WEIGHTS_WEIGHT_MEMORY_H_
#define SFMAMBA_MODEL_WEIGHTS_WEIGHT_MEMORY_H_

#include <cstdint>

#include "ATen/core/Tensor.h"

namespace sfmamba::weights {

// The size of a huge page of Linux on x86-64, in bytes.
constexpr int64_t kHugePage = int64_t{2} << 20;

// Returns an uninitialised tensor [count] of `type` for packed weights. Weights
// of at least half a huge page are placed in huge pages if possible. Each batch
// reads all weights once. With small pages, this would cause many TLB misses.
at::Tensor EmptyWeights(int64_t count, at::ScalarType type = at::kFloat);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_WEIGHT_MEMORY_H_
