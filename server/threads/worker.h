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

// Runs jobs one after another on its own thread. When no job waits, the thread
// also calls a routine from time to time. Jobs and the routine must not throw.
//
// Thread-safe. The destructor waits for a running job or routine, but not for
// the pause between two calls of the routine. The destructor then runs each
// waiting job with `stopped` set to true.
class Worker {
 public:
  // If `stopped` is true, the job must not do its work. It should only report
  // that the work was not done.
  using Job = std::function<void(bool stopped)>;
  // A routine returns the pause until its next call.
  using Routine = std::function<absl::Duration()>;

  struct Options {
    std::string name;  // The name of the thread.
    // The maximum number of waiting jobs. Push() refuses further jobs.
    size_t most_waiting = std::numeric_limits<size_t>::max();
    // Called once on the thread, before any job or routine.
    std::function<void()> start = [] {};
  };

  explicit Worker(Options options);
  // Calls `fn` repeatedly on the thread, with a pause of `period` before each
  // call.
  Worker(std::string name, absl::Duration period, std::function<void()> fn);
  ~Worker();

  // Returns false and drops the job if too many jobs wait or the worker is
  // stopping.
  bool Push(Job job) ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `fn` on the worker's thread and waits until `fn` has returned. May be
  // called only if Push() would accept a job, because the call would never
  // return if Push() refused the job.
  void Run(absl::FunctionRef<void()> fn);
  // Starts to call the routine repeatedly. The first call is after `pause`.
  // Repeat() may be called only once.
  void Repeat(absl::Duration pause, Routine routine) ABSL_LOCKS_EXCLUDED(mu_);
  // Jobs that start after this call have `stopped` set to true. A running job
  // can call stopping() to find out whether Stop() was called.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);
  bool stopping() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Loop();

  const Options options_;
  mutable absl::Mutex mu_;
  SteadyCondVar wake_;  // Signalled when one of the members below changes.
  std::deque<Job> jobs_ ABSL_GUARDED_BY(mu_);
  Routine routine_ ABSL_GUARDED_BY(mu_);
  // The time of the routine's next call.
  absl::Time due_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // The last member, because the thread uses the others.
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_THREADS_WORKER_H_
