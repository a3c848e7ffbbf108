#ifndef SFMAMBA_SERVER_REPOSITORY_FAST_PRECISION_H_
#define SFMAMBA_SERVER_REPOSITORY_FAST_PRECISION_H_

#include "model/config.h"

namespace sfmamba::repository {

// Returns the precision in which this CPU multiplies matrices faster, either
// fp32 or bf16. If the CPU supports bf16, the first call measures both
// precisions for about ten milliseconds. Thread-safe.
model::Precision FastPrecision();

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_FAST_PRECISION_H_
