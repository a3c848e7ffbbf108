#include "server/observability/sharded_histogram.h"

#include <pthread.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/hash/hash.h"

namespace sfmamba::observability {

ShardedHistogram::ShardedHistogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)) {
  for (Shard& shard : shards_) {
    shard.counts =
        std::make_unique<std::atomic<uint64_t>[]>(bounds_.size() + 1);
  }
}

void ShardedHistogram::Observe(double value) {
  Shard& shard = shards_[absl::HashOf(pthread_self()) % kShards];
  const auto bucket =
      std::find_if(bounds_.begin(), bounds_.end(),
                   [value](double bound) { return value <= bound; });
  shard.counts[bucket - bounds_.begin()].fetch_add(1,
                                                   std::memory_order_relaxed);
  // C++17 has no fetch_add() for floating-point numbers.
  double sum = shard.sum.load(std::memory_order_relaxed);
  while (!shard.sum.compare_exchange_weak(sum, sum + value,
                                          std::memory_order_relaxed)) {
  }
}

prometheus::ClientMetric ShardedHistogram::Collect() const {
  prometheus::ClientMetric metric;
  prometheus::ClientMetric::Histogram& sum = metric.histogram;
  for (size_t i = 0; i <= bounds_.size(); ++i) {
    // Prometheus's buckets are cumulative.
    for (const Shard& shard : shards_) {
      sum.sample_count += shard.counts[i].load(std::memory_order_relaxed);
    }
    sum.bucket.push_back(
        {sum.sample_count, i < bounds_.size()
                               ? bounds_[i]
                               : std::numeric_limits<double>::infinity()});
  }
  for (const Shard& shard : shards_) {
    sum.sample_sum += shard.sum.load(std::memory_order_relaxed);
  }
  return metric;
}

HistogramFamily::HistogramFamily(std::string name, std::string help)
    : name_(std::move(name)), help_(std::move(help)) {}

ShardedHistogram& HistogramFamily::Add(const Labels& labels,
                                       std::vector<double> bounds) {
  absl::MutexLock lock(&mu_);
  std::unique_ptr<ShardedHistogram>& made = histograms_[labels];
  if (made == nullptr) {
    made = std::make_unique<ShardedHistogram>(std::move(bounds));
  }
  return *made;
}

void HistogramFamily::Remove(const ShardedHistogram* histogram) {
  absl::MutexLock lock(&mu_);
  const auto found = std::find_if(histograms_.begin(), histograms_.end(),
                                  [histogram](const auto& entry) {
                                    return entry.second.get() == histogram;
                                  });
  if (found != histograms_.end()) histograms_.erase(found);
}

prometheus::MetricFamily HistogramFamily::Collect() const {
  prometheus::MetricFamily family;
  family.name = name_;
  family.help = help_;
  family.type = prometheus::MetricType::Histogram;
  absl::MutexLock lock(&mu_);
  for (const auto& [labels, histogram] : histograms_) {
    prometheus::ClientMetric metric = histogram->Collect();
    for (const auto& [name, value] : labels) {
      metric.label.push_back({name, value});
    }
    family.metric.push_back(std::move(metric));
  }
  return family;
}

}  // namespace sfmamba::observability
