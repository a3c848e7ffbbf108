#ifndef SFMAMBA_SERVER_OBSERVABILITY_MODEL_SERIES_H_
#define SFMAMBA_SERVER_OBSERVABILITY_MODEL_SERIES_H_

#include <string>
#include <utility>
#include <vector>

#include "server/observability/metric_families.h"
#include "server/observability/series.h"

namespace sfmamba::observability {

// The series that all versions of a model share.
struct ModelSeries {
  const MetricFamilies& families;
  const std::string model;
  Series<Histogram> batch_items{families.batch_items, {model}};
  Series<Histogram> occupancy{families.fold_occupancy, {model}};
  Series<Histogram> stages{families.stage_duration, {model}};
  Series<Histogram> durations{families.request_duration, {model}};
  Series<Histogram> cost_model_error{families.cost_model_error, {model}};
  Series<Counter> padding{families.padding_items, {model}};
  Series<Counter> capture_failures{families.capture_failures, {model}};
  Series<Counter> rejections{families.rejections, {model}};
  Series<Counter> errors{families.item_errors, {model}};
  Series<Counter> misses{families.deadline_misses, {model}};
  Series<Counter> reloads{families.reloads, {model}};
  Series<Gauge> in_flight{families.in_flight_batches, {model}};
  // Made anew by each scrape.
  Series<Gauge> queue_items{families.queue_items, {model}};
  Series<Gauge> queue_bytes{families.queue_bytes, {model}};
  Series<Gauge> queue_age{families.queue_age, {model}};
  Series<Gauge> predicted_wait{families.predicted_wait, {model}};

  // Those of which a dashboard asks have values from the start.
  ModelSeries(const MetricFamilies& families, std::string name)
      : families(families), model(std::move(name)) {
    batch_items.Of();
    occupancy.Of();
    padding.Of();
    capture_failures.Of();
    in_flight.Of();
  }
};

// The series of one version.
struct VersionSeries {
  const MetricFamilies& families;
  const std::vector<std::string> version;  // The model and its version.
  Series<Counter> items{families.items, version};
  Series<Counter> requests{families.requests, version};
  Series<Counter> batches{families.batches, version};
  Series<Gauge> state{families.model_state, version};
  Series<Gauge> alive{families.model_alive, version};
  Series<Histogram> load_durations{families.load_duration, version};

  VersionSeries(const MetricFamilies& families,
                std::vector<std::string> version)
      : families(families), version(std::move(version)) {}
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_MODEL_SERIES_H_
