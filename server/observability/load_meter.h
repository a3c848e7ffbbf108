#ifndef SFMAMBA_SERVER_OBSERVABILITY_LOAD_METER_H_
#define SFMAMBA_SERVER_OBSERVABILITY_LOAD_METER_H_

#include "absl/time/time.h"

namespace sfmamba::observability {

// The load of a server, as load balancers weigh it.
struct Load {
  // The backlog over its target, at most 2. 0 if the server is idle.
  double utilization = 0;
  double answers_per_second = 0;
  double errors_per_second = 0;
};

// Averages the load over the last seconds. A balancer divides the rate by the
// utilization. Both are averaged over the same time, so that a server whose
// share grows does not look faster or slower for a while than it is, and the
// shares do not oscillate.
//
// Has no clock. Thread-compatible.
class LoadMeter {
 public:
  // Averages are exponential with this time constant.
  static constexpr absl::Duration kMemory = absl::Seconds(3);
  static constexpr double kMaxUtilization = 2;

  // `target` is the backlog that a utilization of 1 stands for.
  explicit LoadMeter(absl::Duration target) : target_(target) {}

  // A request ended at `now` with an answer, or else with an error of the
  // server. What waits now will take `backlog`. Returns the load after it.
  Load RequestEnded(bool answered, absl::Duration backlog, absl::Time now);

 private:
  const absl::Duration target_;
  absl::Time last_ = absl::InfinitePast();  // The last request's end.
  Load load_;
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_LOAD_METER_H_
