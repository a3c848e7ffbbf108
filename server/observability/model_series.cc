#include "server/observability/model_series.h"

namespace sfmamba::observability {
namespace {

std::string Label(absl::string_view text) { return std::string(text); }

}  // namespace

ModelSeries::ModelSeries(MetricFamilies& families, absl::string_view name)
    : families(families),
      model(name),
      batch_items(
          families.batch_items.Add({{"model", model}}, PowersOfTwo(0, 7))),
      occupancy(families.fold_occupancy.Add(
          {{"model", model}}, Buckets{.1, .2, .3, .4, .5, .6, .7, .8, .9, 1})),
      padding(families.padding_items.Add({{"model", model}})),
      capture_failures(families.capture_failures.Add({{"model", model}})),
      in_flight(families.in_flight_batches.Add({{"model", model}})) {
  for (int i = 0; i < kStageCount; ++i) {
    stages[i] = &families.stage_duration.Add(
        {{"model", model}, {"stage", Label(StageName(Stage(i)))}},
        LatencyBuckets());
  }
}

ModelSeries::~ModelSeries() {
  for (prometheus::Histogram* stage : stages)
    families.stage_duration.Remove(stage);
  families.batch_items.Remove(&batch_items);
  families.fold_occupancy.Remove(&occupancy);
  families.padding_items.Remove(&padding);
  families.capture_failures.Remove(&capture_failures);
  families.in_flight_batches.Remove(&in_flight);
  absl::MutexLock lock(&mu);
  if (cost_model_error != nullptr) {
    families.cost_model_error.Remove(cost_model_error);
  }
  for (prometheus::Histogram* duration : durations) {
    if (duration != nullptr) families.request_duration.Remove(duration);
  }
  for (auto& [reason, counter] : rejections) {
    families.rejections.Remove(counter);
  }
  for (auto& [stage, counter] : misses) {
    families.deadline_misses.Remove(counter);
  }
}

}  // namespace sfmamba::observability
