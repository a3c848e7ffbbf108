#include "server/base/background.h"

#include <sys/resource.h>

#include <thread>

#include "server/base/thread_name.h"

namespace sfmamba::server {
namespace {

// A tenth of a processor that a thread of priority 0 wants too; with 19 a load
// would take minutes on a busy machine. Source: sched(7), the nice value.
constexpr int kNice = 10;

}  // namespace

void RunInBackground(absl::FunctionRef<void()> fn) {
  std::thread([&fn] {
    NameThisThread("background");
    // Linux: the calling thread's. If it fails, `fn` is only less polite.
    setpriority(PRIO_PROCESS, 0, kNice);
    fn();
  }).join();
}

}  // namespace sfmamba::server
