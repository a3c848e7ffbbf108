#ifndef SFMAMBA_SERVER_BASE_PERIODIC_H_
#define SFMAMBA_SERVER_BASE_PERIODIC_H_

#include <functional>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

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
  absl::Notification stopping_;
  std::thread thread_;  // Last: uses the above.
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_BASE_PERIODIC_H_
