#ifndef SFMAMBA_SERVER_OBSERVABILITY_METRIC_FAMILIES_H_
#define SFMAMBA_SERVER_OBSERVABILITY_METRIC_FAMILIES_H_

#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/metric_family.h"
#include "prometheus/registry.h"
#include "server/observability/metrics.h"

namespace sfmamba::observability {

// A registered metric with the names of its labels and, for a histogram, the
// upper bounds of its buckets.
template <typename Metric>
struct Family {
  prometheus::Family<Metric>& metrics;
  std::vector<std::string> labels;
  std::vector<double> bounds;
};

// The time series of one family (metric) that belong to one owner, for example
// to one model. A series is created when it is first used, because most label
// values never occur. The destructor removes all series.
//
//   Series<Counter> misses(families.deadline_misses, {"tiny"});
//   misses.Of({"queue"}).Increment();
//
// Thread-safe. Of() may wait while a scrape reads the metrics, but only when
// Of() creates a series.
template <typename Metric>
class Series {
 public:
  // `first` contains the values of the family's first labels. All series of
  // this object share these values.
  explicit Series(const Family<Metric>& family,
                  std::vector<std::string> first = {})
      : family_(family), first_(std::move(first)) {}
  ~Series() { Clear(); }

  // Returns the series whose remaining labels have the values in `rest`.
  Metric& Of(std::initializer_list<absl::string_view> rest = {})
      ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    Metric*& metric = made_[absl::StrJoin(rest, "\n")];
    if (metric == nullptr) metric = &Make(rest);
    return *metric;
  }

  // Removes all series. References from Of() must no longer be in use.
  void Clear() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    for (auto& [values, metric] : made_) family_.metrics.Remove(metric);
    made_.clear();
  }

 private:
  Metric& Make(std::initializer_list<absl::string_view> rest) {
    std::vector<std::string> values = first_;
    for (const absl::string_view value : rest) values.emplace_back(value);
    prometheus::Labels labels;
    for (size_t i = 0; i < values.size(); ++i) {
      labels[family_.labels.at(i)] = values[i];
    }
    if constexpr (std::is_same_v<Metric, prometheus::Histogram>) {
      return family_.metrics.Add(labels, family_.bounds);
    } else {
      return family_.metrics.Add(labels);
    }
  }

  const Family<Metric> family_;
  const std::vector<std::string> first_;
  absl::Mutex mu_;
  absl::flat_hash_map<std::string, Metric*> made_ ABSL_GUARDED_BY(mu_);
};

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using Buckets = std::vector<double>;

// Returns bucket bounds for latencies, in seconds. The largest bound is the
// default maximum deadline.
Buckets LatencyBuckets();

// Returns the bucket bounds 2^first, ..., 2^last.
Buckets PowersOfTwo(int first, int last);

// All metrics of the server with their names, help texts, types and labels. A
// metric with the label "model" is stored as Family, and all other metrics are
// stored as Series.
struct MetricFamilies {
  using Names = std::vector<std::string>;

  prometheus::Registry registry;

  // These functions register a family with the name "sfmamba_" + `name`.
  Family<Counter> counter(const char* name, const char* help, Names labels);
  Family<Gauge> gauge(const char* name, const char* help, Names labels);
  Family<Histogram> histogram(const char* name, const char* help, Names labels,
                              Buckets bounds);

  Series<Gauge> build_info{gauge("build_info",
                                 "Always 1. The labels describe the build.",
                                 {"version", "revision", "cuda", "torch"})};
  Family<Counter> requests = counter(
      "requests_total", "Requests finished, by gRPC status code and reason.",
      {"model", "version", "method", "code", "reason"});
  Family<Histogram> request_duration =
      histogram("request_duration_seconds",
                "From a request's arrival to its end, by gRPC status code.",
                {"model", "method", "code"}, LatencyBuckets());
  Family<Histogram> stage_duration =
      histogram("stage_duration_seconds",
                "Time that images spent in each stage, by outcome.",
                {"model", "stage", "outcome"}, LatencyBuckets());
  Family<Counter> items = counter("items_total", "Images finished, by outcome.",
                                  {"model", "version", "outcome"});
  Family<Counter> batches =
      counter("batches_total",
              "Batches run, by size and by what made them leave the queue.",
              {"model", "version", "bucket", "trigger"});
  Family<Gauge> in_flight_batches =
      gauge("in_flight_batches", "Batches that the model runs now.", {"model"});
  Family<Histogram> batch_items = histogram("batch_items", "Images in a batch.",
                                            {"model"}, PowersOfTwo(0, 7));
  Family<Histogram> fold_occupancy =
      histogram("batch_fold_occupancy_ratio",
                "Images in a batch divided by its padded size.", {"model"},
                {.1, .2, .3, .4, .5, .6, .7, .8, .9, 1});
  Family<Counter> padding_items = counter(
      "padding_items_total", "Padding computed in place of images.", {"model"});
  Family<Histogram> cost_model_error =
      histogram("cost_model_error_ratio",
                "Duration of a batch divided by its predicted duration.",
                {"model"}, {.5, .7, .8, .9, 1, 1.1, 1.25, 1.5, 2, 4});
  Family<Counter> capture_failures =
      counter("graph_capture_failures_total",
              "CUDA graphs of batches that could not be captured.", {"model"});
  Family<Counter> rejections =
      counter("admission_rejections_total",
              "Images refused before they joined a batch, by reason and queue.",
              {"model", "reason", "queue"});
  Family<Counter> item_errors = counter(
      "item_errors_total", "Images that ended with an error, by reason.",
      {"model", "reason"});
  Family<Counter> deadline_misses = counter(
      "deadline_misses_total",
      "Images that finished late or expired, by the stage that found it.",
      {"model", "stage"});
  Family<Gauge> queue_items = gauge(
      "queue_items", "Images waiting for a batch.", {"model", "priority"});
  Family<Gauge> queue_bytes = gauge(
      "queue_bytes", "Size of the images waiting.", {"model", "priority"});
  Family<Gauge> queue_age =
      gauge("queue_oldest_age_seconds",
            "Time that the oldest image has waited.", {"model", "priority"});
  Family<Gauge> predicted_wait = gauge(
      "predicted_wait_seconds",
      "Expected wait of a new client's image of normal priority.", {"model"});
  Family<Gauge> backlog =
      gauge("backlog_seconds", "Expected time to process all waiting images.",
            {"model"});
  Family<Gauge> active_clients =
      gauge("active_clients",
            "Clients whose images wait for the model's device, for any model.",
            {"model"});
  Family<Histogram> turns_passed = histogram(
      "turns_passed", "Batches of the model that ran while an image waited.",
      {"model"}, {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024});
  Series<Gauge> device_busy{gauge(
      "device_busy_ratio",
      "Share of the last 5 s in which the device ran a batch.", {"device"})};
  Series<Gauge> in_flight{gauge(
      "in_flight_requests",
      "Requests being handled, until their answers are sent.", {"method"})};
  // The inference extension of the Gateway API expects this metric and the next
  // metric under these names.
  Series<Gauge> requests_waiting{
      gauge("num_requests_waiting",
            "Prediction requests that wait. Counts the images that wait for a "
            "decode thread or a batch, at most all requests in flight.",
            {})};
  Series<Gauge> requests_running{
      gauge("num_requests_running",
            "Prediction requests in flight that do not wait.", {})};
  Series<Gauge> decode_busy{
      gauge("decode_threads_busy", "Decode threads at work.", {})};
  Series<Gauge> decode_queue{
      gauge("decode_queue_items", "Images waiting for a decode thread.", {})};
  Series<Counter> decode_failures{counter("image_decode_failures_total",
                                          "Images that were not decoded.",
                                          {"format", "reason"})};
  Series<Histogram> image_pixels{histogram("image_pixels",
                                           "Pixels of the images decoded.",
                                           {"format"}, PowersOfTwo(16, 26))};
  Series<Histogram> request_bytes{histogram("request_bytes",
                                            "Size of request messages.",
                                            {"method"}, PowersOfTwo(8, 26))};
  Series<Gauge> memory_budget{
      gauge("memory_budget_bytes",
            "Memory that all requests together may hold.", {})};
  Series<Gauge> memory_held{gauge(
      "memory_held_bytes", "Memory that requests hold, by purpose.", {"what"})};
  Family<Gauge> model_state = gauge(
      "model_state", "1 for the current state of a model version, else 0.",
      {"model", "version", "state"});
  Family<Gauge> model_alive =
      gauge("model_alive",
            "0 while a batch of a loaded model hangs or its device has failed.",
            {"model", "version"});
  Series<Counter> log_lines_dropped{
      counter("log_lines_dropped_total",
              "Log lines dropped because the output was blocked.", {})};
  Series<Counter> spans_exported{
      counter("trace_spans_exported_total",
              "Spans that the collector has accepted.", {})};
  Series<Counter> spans_dropped{
      counter("trace_spans_dropped_total",
              "Spans that were dropped because too many waited, or because the "
              "collector did not accept them.",
              {})};
  Series<Counter> connections_refused{
      counter("connections_refused_total",
              "Connections that the server closed because there were too many.",
              {"port"})};
  Series<Counter> unauthorized{
      counter("unauthorized_total",
              "Calls refused because the caller may not make them, by reason.",
              {"reason"})};
  Series<Counter> handshake_failures{
      counter("tls_handshake_failures_total",
              "Connections that failed during the TLS handshake.", {})};
  Series<Counter> malformed_forwards{
      counter("malformed_forwarded_for_total",
              "Calls of trusted proxies with a malformed address in "
              "x-forwarded-for.",
              {})};
  Series<Counter> file_reloads{
      counter("security_reloads_total",
              "Reloads of the token file and of the TLS files, by outcome.",
              {"files", "outcome"})};
  Series<Gauge> certificate_expiry{
      gauge("tls_certificate_expiry_timestamp_seconds",
            "Expiry of the server's certificate, in Unix time.", {})};
  Family<Histogram> load_duration =
      histogram("model_load_duration_seconds",
                "Time to read, check and warm up a model version.",
                {"model", "version", "result"},
                {.1, .25, .5, 1, 2.5, 5, 10, 25, 50, 100, 250});
  Family<Counter> reloads =
      counter("model_reloads_total",
              "Loads of model versions after the start, by result.",
              {"model", "result"});

  // Creates the series that must exist with the value 0 before their first
  // event.
  explicit MetricFamilies(const BuildInfo& build);
};

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
  // Each scrape removes the following six gauges and sets them again.
  Series<Gauge> queue_items{families.queue_items, {model}};
  Series<Gauge> queue_bytes{families.queue_bytes, {model}};
  Series<Gauge> queue_age{families.queue_age, {model}};
  Series<Gauge> predicted_wait{families.predicted_wait, {model}};
  Series<Gauge> backlog{families.backlog, {model}};
  Series<Gauge> active_clients{families.active_clients, {model}};
  Series<Histogram> turns_passed{families.turns_passed, {model}};

  // Creates the series that the dashboard queries, so that they exist from the
  // start.
  ModelSeries(const MetricFamilies& families, std::string name)
      : families(families), model(std::move(name)) {
    batch_items.Of();
    occupancy.Of();
    padding.Of();
    capture_failures.Of();
    in_flight.Of();
  }
};

// The series of one version of a model.
struct VersionSeries {
  const MetricFamilies& families;
  const std::vector<std::string> version;  // The model's name and the version.
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

// Returns the standard process_* metrics, which are read from /proc, and the
// memory limit of the process. If the source of a metric cannot be read, the
// metric is missing.
std::vector<prometheus::MetricFamily> CollectProcess();

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_METRIC_FAMILIES_H_
