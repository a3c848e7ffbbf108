#ifndef SFMAMBA_SERVER_THREADS_WORKER_H_
#define SFMAMBA_SERVER_THREADS_WORKER_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/threads/steady_cond_var.h"

namespace sfmamba::server {

// A thread that does jobs, one after the other, and calls a routine now and
// then when there are none. Neither may throw.
//
// Thread-safe. The destructor waits for the job or the call that runs, not for
// the routine's pause; jobs that wait are told that they will not be done.
class Worker {
 public:
  // `stopped`: it is not to be done any more, and only says so.
  using Job = std::function<void(bool stopped)>;
  // Returns how long after its end it is to be called again.
  using Routine = std::function<absl::Duration()>;

  struct Options {
    std::string name;  // The thread's.
    // Further jobs are refused.
    size_t most_waiting = std::numeric_limits<size_t>::max();
    // Called on the thread, first of all.
    std::function<void()> start = [] {};
  };

  explicit Worker(Options options);
  // Calls `fn` with `period` before the first call and between two.
  Worker(std::string name, absl::Duration period, std::function<void()> fn);
  ~Worker();

  // False if too many jobs wait or the worker is being destroyed; the job is
  // dropped then.
  bool Push(Job job) ABSL_LOCKS_EXCLUDED(mu_);
  // Has the thread call `fn`, and waits for it.
  void Run(absl::FunctionRef<void()> fn);
  // The routine is called from now on, after `pause` first. Called once.
  void Repeat(absl::Duration pause, Routine routine) ABSL_LOCKS_EXCLUDED(mu_);
  // Jobs that begin from now on get `stopped`; a running one asks stopping().
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);
  bool stopping() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Loop();

  const Options options_;
  mutable absl::Mutex mu_;
  SteadyCondVar wake_;  // Signalled when what follows changes.
  std::deque<Job> jobs_ ABSL_GUARDED_BY(mu_);
  Routine routine_ ABSL_GUARDED_BY(mu_);
  absl::Time due_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();  // routine_'s.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // Last: uses the above.
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_THREADS_WORKER_H_
