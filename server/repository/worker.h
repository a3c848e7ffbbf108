#ifndef SFMAMBA_SERVER_REPOSITORY_WORKER_H_
#define SFMAMBA_SERVER_REPOSITORY_WORKER_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/threads/steady_cond_var.h"

namespace sfmamba::repository {

// A thread that does jobs, one after the other, and something else now and then
// when there are none.
//
// Thread-safe. The destructor waits for the job that runs; those that wait are
// told that they will not be done.
class Worker {
 public:
  // `stopped`: it is not to be done any more, and only says so.
  using Job = std::function<void(bool stopped)>;
  // Returns how long after its end it is to be called again.
  using Routine = std::function<absl::Duration()>;

  // `name` is the thread's. `most_waiting`: further jobs are refused. The
  // routine begins with the first call of Begin().
  Worker(std::string name, size_t most_waiting, Routine routine);
  ~Worker();

  // False if too many jobs wait or the worker is being destroyed; the job is
  // dropped then.
  bool Push(Job job) ABSL_LOCKS_EXCLUDED(mu_);
  void Begin() ABSL_LOCKS_EXCLUDED(mu_);

  // Jobs that begin from now on get `stopped`; a running one asks stopping().
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);
  bool stopping() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Loop();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopping_ || !jobs_.empty() || begun_ != running_;
  }

  const std::string name_;
  const size_t most_waiting_;
  const Routine routine_;
  mutable absl::Mutex mu_;
  server::SteadyCondVar wake_;  // Signalled when HasWork() may have changed.
  std::deque<Job> jobs_ ABSL_GUARDED_BY(mu_);
  bool begun_ ABSL_GUARDED_BY(mu_) = false;
  bool running_ ABSL_GUARDED_BY(mu_) = false;  // The routine has been begun.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // Last: uses the above.
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_WORKER_H_
