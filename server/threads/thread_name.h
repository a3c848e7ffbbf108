#ifndef SFMAMBA_SERVER_THREADS_THREAD_NAME_H_
#define SFMAMBA_SERVER_THREADS_THREAD_NAME_H_

#include "absl/strings/string_view.h"

namespace sfmamba::server {

// Names the calling thread for ps and debuggers. The name is cut to 15
// characters.
void NameThisThread(absl::string_view name);

// Lowers the priority of the calling thread and of all threads that this thread
// starts later. On a busy CPU, these threads get about a tenth of the time. An
// unprivileged thread cannot raise its priority again.
void LowerThisThreadsPriority();

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_THREADS_THREAD_NAME_H_
