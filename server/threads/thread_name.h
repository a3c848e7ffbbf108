#ifndef SFMAMBA_SERVER_THREADS_THREAD_NAME_H_
#define SFMAMBA_SERVER_THREADS_THREAD_NAME_H_

#include "absl/strings/string_view.h"

namespace sfmamba::server {

// Names the calling thread for ps and debuggers; what exceeds 15 characters is
// cut off.
void NameThisThread(absl::string_view name);

// Leaves the calling thread, and those that it starts from now on, a tenth of a
// processor that others want too. An unprivileged thread cannot take that back.
void LowerThisThreadsPriority();

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_THREADS_THREAD_NAME_H_
