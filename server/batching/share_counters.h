#ifndef SFMAMBA_SERVER_BATCHING_SHARE_COUNTERS_H_
#define SFMAMBA_SERVER_BATCHING_SHARE_COUNTERS_H_

#include <array>

#include "absl/time/time.h"
#include "server/batching/priority.h"

namespace sfmamba::batching {

// Counts what each priority class has used of the device, and says whose turn
// it is. While several classes wait, their uses come to be as kPriorityShares.
// A class that did not wait for a while saves nothing up.
//
// Thread-compatible.
class ShareCounters {
 public:
  // Whether tasks of the class wait from now on.
  void SetWaits(Priority priority, bool waits);
  // Tasks of the class used `cost` of the device.
  void Charge(Priority priority, absl::Duration cost);

  // All classes, the one that is furthest behind its share first; of equal
  // ones the higher first.
  std::array<Priority, kPriorities> Order() const;

 private:
  struct Counter {
    bool waits = false;
    double used = 0;  // Seconds, divided by the share.
  };

  // The least use of the classes that wait; infinite if none does.
  double LeastWaiting() const;

  std::array<Counter, kPriorities> counters_;
  // A class that begins to wait has used at least this. Never falls.
  double floor_ = 0;
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_SHARE_COUNTERS_H_
