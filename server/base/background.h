#ifndef SFMAMBA_SERVER_BASE_BACKGROUND_H_
#define SFMAMBA_SERVER_BASE_BACKGROUND_H_

#include "absl/functional/function_ref.h"

namespace sfmamba::server {

// Calls `fn` on a thread that gets a tenth of a processor that others want too,
// and waits for it. The threads that `fn` starts are like that too. The thread
// is `fn`'s own because an unprivileged thread cannot raise its priority again.
// `fn` must not throw.
void RunInBackground(absl::FunctionRef<void()> fn);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_BASE_BACKGROUND_H_
