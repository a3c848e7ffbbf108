#include "model/engine/torch_errors.h"

#include <exception>
#include <new>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "c10/util/Exception.h"

namespace sfmamba::engine {
namespace {

// Returns whether an error of the CUDA runtime, cuBLAS or cuDNN says that a
// device's memory has run out. libtorch has no type for these.
bool IsOutOfMemory(absl::string_view message) {
  for (const absl::string_view sign :
       {"CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_ALLOC_FAILED", "DEVICE_ALLOCATION_FAILED"}) {
    if (absl::StrContains(message, sign)) return true;
  }
  return false;
}

}  // namespace

absl::Status CaughtError() {
  try {
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    // This exception is derived from c10::Error, so it must be caught first.
    // Clients see the message, so it must not contain a backtrace.
    return absl::ResourceExhaustedError(error.what_without_backtrace());
  } catch (const c10::Error& error) {
    const char* const message = error.what_without_backtrace();
    return IsOutOfMemory(message) ? absl::ResourceExhaustedError(message)
                                  : absl::InternalError(message);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("there is too little memory");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace sfmamba::engine
