#ifndef SFMAMBA_SERVER_BASE_THREAD_POOL_H_
#define SFMAMBA_SERVER_BASE_THREAD_POOL_H_

#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace sfmamba::server {

// Runs functions on a fixed number of threads, first come, first served.
//
// Thread-safe. TryRun() never blocks. The destructor runs everything accepted,
// then joins the threads.
class ThreadPool {
 public:
  struct Options {
    std::string name = "pool";  // Of its threads, for ps and debuggers.
    int threads = 1;
    // Functions that may wait. More only lengthens the wait of the last.
    int max_queued = 256;
    // What a client is told to wait when the queue is full.
    absl::Duration retry_after = absl::Milliseconds(100);
  };

  explicit ThreadPool(Options options);
  ~ThreadPool();

  // `fn` answers for itself: an exception that leaves it is dropped. If the
  // queue is full: RESOURCE_EXHAUSTED with reason QUEUE_FULL, and `fn` is
  // untouched.
  absl::Status TryRun(absl::AnyInvocable<void()>&& fn) ABSL_LOCKS_EXCLUDED(mu_);

  int busy() const ABSL_LOCKS_EXCLUDED(mu_);    // Threads running a function.
  int queued() const ABSL_LOCKS_EXCLUDED(mu_);  // Functions waiting.

 private:
  void Loop();  // The body of each thread.

  const Options options_;
  mutable absl::Mutex mu_;
  absl::CondVar changed_;  // Signalled when queue_ or stopping_ changes.
  std::deque<absl::AnyInvocable<void()>> queue_ ABSL_GUARDED_BY(mu_);
  int busy_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;  // Last: they use everything above.
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_BASE_THREAD_POOL_H_
