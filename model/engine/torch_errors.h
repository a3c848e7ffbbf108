#ifndef SFMAMBA_MODEL_ENGINE_TORCH_ERRORS_H_
#define SFMAMBA_MODEL_ENGINE_TORCH_ERRORS_H_

#include "absl/status/status.h"

namespace sfmamba::engine {

// Converts the exception that is being handled to a status. Returns
// RESOURCE_EXHAUSTED if the exception says that memory has run out. Returns
// INTERNAL for all other exceptions that are derived from std::exception, such
// as c10::Error of libtorch. Rethrows an exception that is not derived from
// std::exception. May be called only in a catch clause.
absl::Status CaughtError();

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_TORCH_ERRORS_H_
