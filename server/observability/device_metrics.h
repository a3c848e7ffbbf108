#ifndef SFMAMBA_SERVER_OBSERVABILITY_DEVICE_METRICS_H_
#define SFMAMBA_SERVER_OBSERVABILITY_DEVICE_METRICS_H_

#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace sfmamba::observability {

// Measures in which share of the last kWindow at least one batch ran. It is
// told the time, which never goes back.
//
// Thread-compatible.
class BusyMeter {
 public:
  static constexpr absl::Duration kWindow = absl::Seconds(5);

  // A batch begins or ends; several may run at once.
  void Start(absl::Time now);
  void End(absl::Time now);

  // From 0 to 1.
  double Share(absl::Time now) const;

 private:
  struct Period {
    absl::Time begin, end;
  };

  int running_ = 0;           // Batches.
  absl::Time since_;          // The current period's begin, if one runs.
  std::deque<Period> ended_;  // Disjoint; older ones than kWindow are dropped.
};

// The series of one device. Thread-safe.
class DeviceMetrics {
 public:
  // Called by the threads that run batches on the device, when a batch begins
  // and when it has ended.
  void BatchStarted() ABSL_LOCKS_EXCLUDED(mu_);
  void BatchEnded() ABSL_LOCKS_EXCLUDED(mu_);

  // The share of the last 5 s in which the device ran a batch.
  double BusyShare() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  BusyMeter meter_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_DEVICE_METRICS_H_
