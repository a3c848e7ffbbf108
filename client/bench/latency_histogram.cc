#include "client/bench/latency_histogram.h"

#include <algorithm>
#include <cmath>

namespace sfmamba::client {
namespace {

// A value is a latency in nanoseconds. Each value below 2^8 has its own bucket.
// For larger values, the range from 2^k to 2^(k+1) - 1 is divided into 2^7
// buckets of equal width. The bucket is selected by the position k of the
// value's highest set bit and by the 7 bits that follow this bit.
constexpr int kFractionBits = 7;
constexpr int kBucketsPerPower = 1 << kFractionBits;
constexpr int kBuckets = (63 - kFractionBits + 1) * kBucketsPerPower;

// Returns the position of the highest set bit, 0..62. Requires value > 0.
int Exponent(int64_t value) {
  return 63 - __builtin_clzll(static_cast<uint64_t>(value));
}

int BucketOf(int64_t value) {
  if (value < kBucketsPerPower) return static_cast<int>(value);
  const int shift = Exponent(value) - kFractionBits;
  return shift * kBucketsPerPower + static_cast<int>(value >> shift);
}

// Returns the largest value of the bucket.
int64_t UpperBound(int bucket) {
  if (bucket < 2 * kBucketsPerPower) return bucket;
  const int shift = bucket / kBucketsPerPower - 1;
  const int64_t leading = bucket - shift * kBucketsPerPower;
  return (leading << shift) + ((int64_t{1} << shift) - 1);
}

}  // namespace

LatencyHistogram::LatencyHistogram() : counts_(kBuckets) {}

void LatencyHistogram::Record(absl::Duration latency) {
  const int64_t value = std::max<int64_t>(0, absl::ToInt64Nanoseconds(latency));
  ++counts_[BucketOf(value)];
  ++count_;
  sum_ += static_cast<double>(value);
  max_ = std::max(max_, value);
}

void LatencyHistogram::Add(const LatencyHistogram& other) {
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    counts_[bucket] += other.counts_[bucket];
  }
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

absl::Duration LatencyHistogram::Mean() const {
  return count_ == 0 ? absl::ZeroDuration() : absl::Nanoseconds(sum_ / count_);
}

absl::Duration LatencyHistogram::Percentile(double percent) const {
  const double rank = std::ceil(percent / 100 * static_cast<double>(count_));
  int64_t seen = 0;
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    seen += counts_[bucket];
    if (seen > 0 && static_cast<double>(seen) >= rank) {
      return absl::Nanoseconds(std::min(UpperBound(bucket), max_));
    }
  }
  return absl::ZeroDuration();
}

}  // namespace sfmamba::client
