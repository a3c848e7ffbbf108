#ifndef SFMAMBA_SERVER_OBSERVABILITY_MODEL_SERIES_H_
#define SFMAMBA_SERVER_OBSERVABILITY_MODEL_SERIES_H_

#include <array>
#include <atomic>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "server/observability/metric_families.h"
#include "server/observability/metric_names.h"
#include "server/observability/sharded_histogram.h"

namespace sfmamba::observability {

// The series that all versions of a model share. They are removed with this.
struct ModelSeries {
  MetricFamilies& families;
  const std::string model;
  ShardedHistogram& batch_items;
  ShardedHistogram& occupancy;
  prometheus::Counter& padding;
  prometheus::Counter& capture_failures;
  prometheus::Gauge& in_flight;
  // By stage and outcome. Null until first observed.
  std::array<std::array<std::atomic<ShardedHistogram*>, kItemOutcomeCount>,
             kStageCount>
      stages = {};
  // By method and code. The same.
  std::array<std::array<std::atomic<ShardedHistogram*>, kCodeCount>,
             kMethodCount>
      durations = {};

  absl::Mutex mu;
  // The members below are created when first counted.
  ShardedHistogram* cost_model_error ABSL_GUARDED_BY(mu) = nullptr;
  absl::flat_hash_map<std::pair<std::string, std::string>, prometheus::Counter*>
      rejections ABSL_GUARDED_BY(mu);  // By reason and queue.
  absl::flat_hash_map<std::string, prometheus::Counter*> errors
      ABSL_GUARDED_BY(mu);  // By reason.
  absl::flat_hash_map<std::string, prometheus::Counter*> misses
      ABSL_GUARDED_BY(mu);
  absl::flat_hash_map<std::string, prometheus::Counter*> reloads
      ABSL_GUARDED_BY(mu);  // By result.

  ModelSeries(MetricFamilies& families, absl::string_view name);
  ~ModelSeries();
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_MODEL_SERIES_H_
