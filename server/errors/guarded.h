#ifndef SFMAMBA_SERVER_ERRORS_GUARDED_H_
#define SFMAMBA_SERVER_ERRORS_GUARDED_H_

#include <exception>

#include "absl/status/status.h"

namespace sfmamba::server {

// Calls `fn` and converts an exception to INTERNAL. The exception's text is not
// returned, because it may contain private data.
template <typename Fn>
auto Guarded(const Fn& fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (const std::exception&) {
    return absl::InternalError("the image could not be handled");
  }
}

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_ERRORS_GUARDED_H_
