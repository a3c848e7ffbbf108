#include "model/engine/torch_errors.h"

#include <exception>

#include "c10/util/Exception.h"

namespace sfmamba::engine {

absl::Status CaughtError() {
  try {
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    // It is a c10::Error too. Clients see the message, so it has no backtrace.
    return absl::ResourceExhaustedError(error.what_without_backtrace());
  } catch (const c10::Error& error) {
    return absl::InternalError(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace sfmamba::engine
