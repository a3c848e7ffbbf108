#ifndef SFMAMBA_SERVER_THREADS_PERIODIC_H_
#define SFMAMBA_SERVER_THREADS_PERIODIC_H_

#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/threads/steady_cond_var.h"

namespace sfmamba::server {

// Calls a function again and again, on a thread of its own, with `period`
// between the end of a call and the next. The destructor waits for a call that
// runs, not for the period.
class Periodic {
 public:
  // `name` is the thread's. `fn` must not throw.
  Periodic(std::string name, absl::Duration period, std::function<void()> fn);
  ~Periodic();

 private:
  void Run(absl::Duration period);  // The body of thread_.

  const std::function<void()> fn_;
  absl::Mutex mu_;
  SteadyCondVar wake_;  // Signalled when stopping_ changes.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // Last: uses the above.
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_THREADS_PERIODIC_H_
