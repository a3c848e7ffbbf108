#ifndef SFMAMBA_SERVER_OBSERVABILITY_DEVICE_METRICS_H_
#define SFMAMBA_SERVER_OBSERVABILITY_DEVICE_METRICS_H_

#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace sfmamba::observability {

// Measures the fraction of the last 5 seconds (kWindow) during which at least
// one batch ran. The caller passes the current time, which must never decrease.
//
// Thread-compatible.
class BusyMeter {
 public:
  static constexpr absl::Duration kWindow = absl::Seconds(5);

  // Start() must be called when a batch starts, and End() when a batch ends.
  // Batches may overlap.
  void Start(absl::Time now);
  void End(absl::Time now);

  // Returns the fraction of time with a running batch, from 0 to 1.
  double Share(absl::Time now) const;

 private:
  struct Period {
    absl::Time begin, end;
  };

  int running_ = 0;  // The number of running batches.
  // The start of the current busy period. Valid if running_ > 0.
  absl::Time since_;
  // The busy periods that have ended. Periods do not overlap. Periods older
  // than kWindow are removed.
  std::deque<Period> ended_;
};

// The metrics of one device. Thread-safe.
class DeviceMetrics {
 public:
  // Each thread that runs batches on the device must call BatchStarted() when a
  // batch starts, and BatchEnded() when the batch ends.
  void BatchStarted() ABSL_LOCKS_EXCLUDED(mu_);
  void BatchEnded() ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the fraction of the last 5 s in which the device ran a batch.
  double BusyShare() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  BusyMeter meter_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_DEVICE_METRICS_H_
