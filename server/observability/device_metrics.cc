#include "server/observability/device_metrics.h"

#include <algorithm>

#include "base/steady_clock.h"

namespace sfmamba::observability {

void BusyMeter::Start(absl::Time now) {
  // Batches that overlap count as one busy period.
  if (running_++ == 0) since_ = now;
}

void BusyMeter::End(absl::Time now) {
  if (--running_ > 0) return;
  ended_.push_back({since_, now});
  while (ended_.front().end + kWindow < now) ended_.pop_front();
}

double BusyMeter::Share(absl::Time now) const {
  const absl::Time begin = now - kWindow;
  absl::Duration busy;
  if (running_ > 0) busy = now - std::max(begin, since_);
  for (const Period& period : ended_) {
    if (period.end > begin) busy += period.end - std::max(begin, period.begin);
  }
  return absl::FDivDuration(busy, kWindow);
}

// The methods of DeviceMetrics read the clock while the mutex is locked. The
// times that the meter gets therefore never decrease.
void DeviceMetrics::BatchStarted() {
  absl::MutexLock lock(&mu_);
  meter_.Start(base::SteadyNow());
}

void DeviceMetrics::BatchEnded() {
  absl::MutexLock lock(&mu_);
  meter_.End(base::SteadyNow());
}

double DeviceMetrics::BusyShare() const {
  absl::MutexLock lock(&mu_);
  return meter_.Share(base::SteadyNow());
}

}  // namespace sfmamba::observability
