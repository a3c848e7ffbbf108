#ifndef SFMAMBA_SERVER_ERRORS_GUARDED_H_
#define SFMAMBA_SERVER_ERRORS_GUARDED_H_

#include <exception>

#include "absl/status/status.h"

namespace sfmamba::server {

// Calls `fn` and returns its result. If `fn` throws an exception, returns
// INTERNAL. The error does not contain the exception's text, which may be
// private.
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
