#ifndef SFMAMBA_MODEL_ENGINE_GUARDED_H_
#define SFMAMBA_MODEL_ENGINE_GUARDED_H_

#include "absl/status/status.h"
#include "c10/core/InferenceMode.h"
#include "model/engine/torch_errors.h"

namespace sfmamba::engine {

// Calls `body`, which returns an absl::Status, in inference mode. What it
// throws becomes the status that CaughtError() returns.
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
