#ifndef SFMAMBA_SERVER_THREADS_BACKGROUND_H_
#define SFMAMBA_SERVER_THREADS_BACKGROUND_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace sfmamba::server {

// A thread that gets a tenth of a processor that others want too. So do the
// threads that are started on it. It is one thread for many calls because an
// unprivileged thread cannot raise its priority again, and because malloc()
// keeps a pool of memory for each thread that has used much.
//
// Thread-safe.
class BackgroundThread {
 public:
  // `start` is called on the thread, first of all.
  explicit BackgroundThread(std::function<void()> start = [] {});
  ~BackgroundThread();

  // Calls `fn` on the thread and waits for it. `fn` must not throw.
  void Run(absl::FunctionRef<void()> fn) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Loop(const std::function<void()>& start);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopping_ || fn_ != nullptr;
  }
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return fn_ == nullptr;
  }

  absl::Mutex calls_mu_;  // Held during a call of Run().
  absl::Mutex mu_;
  // What runs, or is to.
  const absl::FunctionRef<void()>* fn_ ABSL_GUARDED_BY(mu_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // Last: uses the above.
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_THREADS_BACKGROUND_H_
