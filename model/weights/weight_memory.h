#ifndef SFMAMBA_MODEL_WEIGHTS_WEIGHT_MEMORY_H_
#define SFMAMBA_MODEL_WEIGHTS_WEIGHT_MEMORY_H_

#include <cstdint>

#include "ATen/core/Tensor.h"

namespace sfmamba::weights {

// What Linux calls a huge page on x86-64, in bytes.
constexpr int64_t kHugePage = int64_t{2} << 20;

// fp32 [count], not set, for packed weights. From half a huge page on they
// begin with one and lie in huge pages if the system has some: each batch reads
// all weights once, and with small pages waits for their addresses, too.
at::Tensor EmptyWeights(int64_t count);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_WEIGHT_MEMORY_H_
