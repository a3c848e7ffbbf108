#ifndef SFMAMBA_MODEL_ENGINE_GUARDED_H_
#define SFMAMBA_MODEL_ENGINE_GUARDED_H_

#include "absl/status/status.h"
#include "c10/core/InferenceMode.h"
#include "model/engine/torch_errors.h"

namespace sfmamba::engine {

// Calls `body` in libtorch's inference mode and returns the absl::Status that
// `body` returns. If `body` throws, returns CaughtError().
template <typename Body>
absl::Status Guarded(Body body) {
  try {
    const c10::InferenceMode guard;
    return body();
  } catch (...) {
    return CaughtError();
  }
}

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_GUARDED_H_
