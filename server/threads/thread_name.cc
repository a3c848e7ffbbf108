#include "server/threads/thread_name.h"

#include <pthread.h>
#include <sys/resource.h>

#include <string>

namespace sfmamba::server {
namespace {

// A tenth of a processor that a thread of priority 0 wants too; with 19 a load
// would take minutes on a busy machine. Source: sched(7), the nice value.
constexpr int kNice = 10;

}  // namespace

void NameThisThread(absl::string_view name) {
  pthread_setname_np(pthread_self(), std::string(name.substr(0, 15)).c_str());
}

void LowerThisThreadsPriority() {
  // Linux: the calling thread's. If it fails, it is only less polite.
  setpriority(PRIO_PROCESS, 0, kNice);
}

}  // namespace sfmamba::server
