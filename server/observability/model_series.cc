#include "server/observability/model_series.h"

namespace sfmamba::observability {

ModelSeries::ModelSeries(MetricFamilies& families, absl::string_view name)
    : families(families),
      model(name),
      batch_items(
          families.batch_items.Add({{"model", model}}, PowersOfTwo(0, 7))),
      occupancy(families.fold_occupancy.Add(
          {{"model", model}}, Buckets{.1, .2, .3, .4, .5, .6, .7, .8, .9, 1})),
      padding(families.padding_items.Add({{"model", model}})),
      capture_failures(families.capture_failures.Add({{"model", model}})),
      in_flight(families.in_flight_batches.Add({{"model", model}})) {}

ModelSeries::~ModelSeries() {
  for (auto& outcomes : stages) {
    for (auto& stage : outcomes) {
      if (stage != nullptr) families.stage_duration.Remove(stage);
    }
  }
  for (auto& codes : durations) {
    for (auto& duration : codes) {
      if (duration != nullptr) families.request_duration.Remove(duration);
    }
  }
  families.batch_items.Remove(&batch_items);
  families.fold_occupancy.Remove(&occupancy);
  families.padding_items.Remove(&padding);
  families.capture_failures.Remove(&capture_failures);
  families.in_flight_batches.Remove(&in_flight);
  absl::MutexLock lock(&mu);
  if (cost_model_error != nullptr) {
    families.cost_model_error.Remove(cost_model_error);
  }
  for (auto& [key, counter] : rejections) families.rejections.Remove(counter);
  for (auto& [reason, counter] : errors) families.item_errors.Remove(counter);
  for (auto& [stage, counter] : misses) {
    families.deadline_misses.Remove(counter);
  }
  for (auto& [result, counter] : reloads) families.reloads.Remove(counter);
}

}  // namespace sfmamba::observability
