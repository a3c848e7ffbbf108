#ifndef SFMAMBA_SERVER_REPOSITORY_FAST_PRECISION_H_
#define SFMAMBA_SERVER_REPOSITORY_FAST_PRECISION_H_

#include "model/config.h"

namespace sfmamba::repository {

// Returns the precision in which this processor multiplies matrices faster,
// fp32 or bf16. The first call multiplies in both, for about ten milliseconds,
// unless the processor does not compute bf16 natively. Thread-safe.
model::Precision FastPrecision();

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_FAST_PRECISION_H_
