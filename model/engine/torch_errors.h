#ifndef SFMAMBA_MODEL_ENGINE_TORCH_ERRORS_H_
#define SFMAMBA_MODEL_ENGINE_TORCH_ERRORS_H_

#include "absl/status/status.h"

namespace sfmamba::engine {

// Converts the exception that is being handled to a status. The exception may
// be from libtorch or from the standard library. Returns RESOURCE_EXHAUSTED if
// memory has run out, and INTERNAL for other errors. Rethrows any other kind of
// exception. May be called only in a catch clause:
absl::Status CaughtError();

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_TORCH_ERRORS_H_
