#ifndef SFMAMBA_CLIENT_BENCH_LATENCY_HISTOGRAM_H_
#define SFMAMBA_CLIENT_BENCH_LATENCY_HISTOGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace sfmamba::client {

// Counts durations in buckets and computes percentiles. The width of a bucket
// is at most 1/128 (0.8 %) of its values. So percentiles have the same relative
// accuracy from nanoseconds to centuries. Takes 57 KiB for any number of
// durations. The idea is HdrHistogram's. Not thread-safe.
class LatencyHistogram {
 public:
  LatencyHistogram();

  // Negative latencies count as zero.
  void Record(absl::Duration latency);

  // Records everything that `other` has recorded.
  void Add(const LatencyHistogram& other);

  int64_t count() const { return count_; }
  // Mean(), Max() and Percentile() return zero if nothing is recorded.
  absl::Duration Mean() const;
  absl::Duration Max() const { return absl::Nanoseconds(max_); }

  // Returns the smallest latency L for which at least `percent` % of the
  // recorded latencies are less than or equal to L. The result may be too large
  // by the width of a bucket, but is never above Max(). `percent` must be above
  // 0 and at most 100.
  absl::Duration Percentile(double percent) const;

 private:
  std::vector<int64_t> counts_;
  int64_t count_ = 0;
  double sum_ = 0;   // In nanoseconds.
  int64_t max_ = 0;  // In nanoseconds.
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_BENCH_LATENCY_HISTOGRAM_H_
