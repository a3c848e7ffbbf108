#include "server/observability/inference_statistics.h"

#include "absl/time/clock.h"

namespace sfmamba::observability {

void InferenceStatistics::RequestSucceeded(int images, const Times& times) {
  const absl::Time now = absl::Now();
  absl::MutexLock lock(&mu_);
  sums_.images += images;
  sums_.last = now;
  sums_.success.Add(times.total);
  sums_.queue.Add(times.queue);
  sums_.input.Add(times.input);
  sums_.infer.Add(times.infer);
  sums_.output.Add(times.output);
}

void InferenceStatistics::RequestFailed(absl::Duration total) {
  absl::MutexLock lock(&mu_);
  sums_.fail.Add(total);
}

void InferenceStatistics::BatchRun(int images, absl::Duration time) {
  absl::MutexLock lock(&mu_);
  ++sums_.batches;
  sums_.by_batch_size[images].Add(time);
}

InferenceStatistics::Snapshot InferenceStatistics::Get() const {
  absl::MutexLock lock(&mu_);
  return sums_;
}

}  // namespace sfmamba::observability
