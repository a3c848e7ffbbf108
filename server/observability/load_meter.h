#ifndef SFMAMBA_SERVER_OBSERVABILITY_LOAD_METER_H_
#define SFMAMBA_SERVER_OBSERVABILITY_LOAD_METER_H_

#include "absl/time/time.h"

namespace sfmamba::observability {

// The load of a server in the form that load balancers use.
struct Load {
  // The average of backlog / target backlog over the last seconds. The backlog
  // is the expected time until the waiting images are computed, and 0 if none
  // wait. A ratio above 2 counts as 2.
  double utilization = 0;
  double answers_per_second = 0;
  double errors_per_second = 0;
};

// Averages the load over the last seconds. A load balancer divides the rate of
// requests by the utilization. The rates and the utilization are therefore
// averaged with the same time constant. With different time constants, a server
// whose traffic grows would briefly look too fast or too slow, and the load
// balancer's weights would oscillate.
//
// The class reads no clock. Callers pass the time. Thread-compatible.
class LoadMeter {
 public:
  // The time constant of the exponential averages.
  static constexpr absl::Duration kMemory = absl::Seconds(3);
  static constexpr double kMaxUtilization = 2;

  // `target` is the target backlog. If the backlog stays equal to `target`, the
  // utilization becomes 1.
  explicit LoadMeter(absl::Duration target) : target_(target) {}

  // Records that a request ended at `now`. `answered` is true for an answer and
  // false for a server error. `backlog` is the expected time until the
  // waiting images are computed. Returns the updated load.
  Load RequestEnded(bool answered, absl::Duration backlog, absl::Time now);

 private:
  const absl::Duration target_;
  // The time when the last request ended.
  absl::Time last_ = absl::InfinitePast();
  Load load_;
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_LOAD_METER_H_
