#include "server/threads/background.h"

#include <sys/resource.h>

#include <utility>

#include "server/threads/thread_name.h"

namespace sfmamba::server {
namespace {

// A tenth of a processor that a thread of priority 0 wants too; with 19 a load
// would take minutes on a busy machine. Source: sched(7), the nice value.
constexpr int kNice = 10;

}  // namespace

BackgroundThread::BackgroundThread(std::function<void()> start)
    : thread_([this, start = std::move(start)] { Loop(start); }) {}

BackgroundThread::~BackgroundThread() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  thread_.join();
}

void BackgroundThread::Run(absl::FunctionRef<void()> fn) {
  absl::MutexLock call(&calls_mu_);
  absl::MutexLock lock(&mu_);
  fn_ = &fn;
  mu_.Await(absl::Condition(this, &BackgroundThread::IsIdle));
}

void BackgroundThread::Loop(const std::function<void()>& start) {
  NameThisThread("background");
  // Linux: the calling thread's. If it fails, it is only less polite.
  setpriority(PRIO_PROCESS, 0, kNice);
  start();
  while (true) {
    const absl::FunctionRef<void()>* fn;
    {
      absl::MutexLock lock(&mu_,
                           absl::Condition(this, &BackgroundThread::HasWork));
      if (fn_ == nullptr) return;
      fn = fn_;
    }
    (*fn)();
    absl::MutexLock lock(&mu_);
    fn_ = nullptr;
  }
}

}  // namespace sfmamba::server
