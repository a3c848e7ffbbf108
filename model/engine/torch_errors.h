#ifndef SFMAMBA_MODEL_ENGINE_TORCH_ERRORS_H_
#define SFMAMBA_MODEL_ENGINE_TORCH_ERRORS_H_

#include "absl/status/status.h"

namespace sfmamba::engine {

// Returns the exception that is being handled, of libtorch or the standard
// library, as a status. It is RESOURCE_EXHAUSTED if memory has run out, else
// INTERNAL. Any other exception is thrown on. May be called only in a catch
// clause:
//
//   try {
//     ...
//   } catch (...) {
//     return CaughtError();
//   }
absl::Status CaughtError();

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_TORCH_ERRORS_H_
