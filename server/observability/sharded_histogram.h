#ifndef SFMAMBA_SERVER_OBSERVABILITY_SHARDED_HISTOGRAM_H_
#define SFMAMBA_SERVER_OBSERVABILITY_SHARDED_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/client_metric.h"
#include "prometheus/metric_family.h"

namespace sfmamba::observability {

// A Prometheus histogram that many threads observe at once: each of them counts
// in one of a few shards, without a lock, and the shards are added up when
// Collect() is called. Thread-safe.
class ShardedHistogram {
 public:
  // `bounds` are the buckets' upper bounds, inclusive and ascending; the last
  // bucket, of what is larger, is added to them.
  explicit ShardedHistogram(std::vector<double> bounds);

  void Observe(double value);

  // Returns all values observed before the call, and perhaps some observed
  // during it.
  prometheus::ClientMetric Collect() const;

 private:
  static constexpr int kShards = 16;

  struct alignas(64) Shard {
    std::unique_ptr<std::atomic<uint64_t>[]> counts;  // By bucket.
    std::atomic<double> sum{0};
  };

  const std::vector<double> bounds_;
  std::array<Shard, kShards> shards_;
};

// The histograms of one name, told apart by their labels. Thread-safe.
class HistogramFamily {
 public:
  HistogramFamily(std::string name, std::string help);

  using Labels = std::map<std::string, std::string>;

  // Returns the histogram of these labels, which is made by the first call.
  ShardedHistogram& Add(const Labels& labels, std::vector<double> bounds)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Destroys it. Null is none.
  void Remove(const ShardedHistogram* histogram) ABSL_LOCKS_EXCLUDED(mu_);

  prometheus::MetricFamily Collect() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::string name_;
  const std::string help_;

  mutable absl::Mutex mu_;
  std::map<Labels, std::unique_ptr<ShardedHistogram>> histograms_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_SHARDED_HISTOGRAM_H_
