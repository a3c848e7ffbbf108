#ifndef SFMAMBA_CLIENT_BENCH_LATENCY_HISTOGRAM_H_
#define SFMAMBA_CLIENT_BENCH_LATENCY_HISTOGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace sfmamba::client {

// Counts durations in buckets that are at most 1/128 (0.8 %) of their values
// wide, so that any percentile from a nanosecond to centuries is as exact as
// the next, in 57 KiB however many are recorded (the idea of HdrHistogram). Not
// thread-safe.
class LatencyHistogram {
 public:
  LatencyHistogram();

  // Negative latencies count as zero.
  void Record(absl::Duration latency);

  // Records all that `other` has recorded.
  void Add(const LatencyHistogram& other);

  int64_t count() const { return count_; }
  absl::Duration Mean() const;  // Zero when empty, as are the two below.
  absl::Duration Max() const { return absl::Nanoseconds(max_); }

  // The smallest recorded value, up to bucket width and never above Max(), that
  // at least `percent` of the values do not exceed; 0 < percent <= 100.
  absl::Duration Percentile(double percent) const;

 private:
  std::vector<int64_t> counts_;
  int64_t count_ = 0;
  double sum_ = 0;   // Nanoseconds.
  int64_t max_ = 0;  // Nanoseconds.
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_BENCH_LATENCY_HISTOGRAM_H_
