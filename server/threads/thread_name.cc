#include "server/threads/thread_name.h"

#include <pthread.h>
#include <sys/resource.h>

#include <string>

namespace sfmamba::server {
namespace {

// A thread with this nice value gets a tenth of a CPU that it shares with a
// thread of nice value 0. At a nice value of 19, a model load would take
// minutes on a busy machine. Source: sched(7), section "The nice value".
constexpr int kNice = 10;

}  // namespace

void NameThisThread(absl::string_view name) {
  pthread_setname_np(pthread_self(), std::string(name.substr(0, 15)).c_str());
}

void LowerThisThreadsPriority() {
  // The argument 0 means the calling process. Linux, however, changes only the
  // calling thread and no other thread of the process. A failure is harmless.
  setpriority(PRIO_PROCESS, 0, kNice);
}

}  // namespace sfmamba::server
