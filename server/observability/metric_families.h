#ifndef SFMAMBA_SERVER_OBSERVABILITY_METRIC_FAMILIES_H_
#define SFMAMBA_SERVER_OBSERVABILITY_METRIC_FAMILIES_H_

#include <array>
#include <atomic>
#include <deque>
#include <vector>

#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "server/observability/metrics.h"
#include "server/observability/sharded_histogram.h"

namespace sfmamba::observability {

using Buckets = std::vector<double>;

// Seconds, up to the longest deadline that a request may have by default.
Buckets LatencyBuckets();

// 2^first .. 2^last.
Buckets PowersOfTwo(int first, int last);

// Every family: the one list of names, helps and types.
struct MetricFamilies {
  prometheus::Registry registry;  // Counters and gauges.
  std::deque<HistogramFamily> histograms;

  // Each registers a family; "sfmamba_" goes before `name`.
  prometheus::Family<prometheus::Counter>& counter(const char* name,
                                                   const char* help);
  prometheus::Family<prometheus::Gauge>& gauge(const char* name,
                                               const char* help);
  HistogramFamily& histogram(const char* name, const char* help);

  prometheus::Family<prometheus::Gauge>& build_info =
      gauge("build_info", "Always 1; the labels say what was built.");
  prometheus::Family<prometheus::Counter>& requests = counter(
      "requests_total", "Requests finished, by gRPC status code and reason.");
  HistogramFamily& request_duration =
      histogram("request_duration_seconds",
                "From a request's arrival to its end, by gRPC status code.");
  HistogramFamily& stage_duration =
      histogram("stage_duration_seconds",
                "Time of an image in each stage, by how the image ended.");
  prometheus::Family<prometheus::Counter>& items =
      counter("items_total", "Images finished, by outcome.");
  prometheus::Family<prometheus::Counter>& batches =
      counter("batches_total", "Batches run, by what made them leave.");
  prometheus::Family<prometheus::Gauge>& in_flight_batches =
      gauge("in_flight_batches", "Batches that the model runs now.");
  HistogramFamily& batch_items = histogram("batch_items", "Images in a batch.");
  HistogramFamily& fold_occupancy =
      histogram("batch_fold_occupancy_ratio",
                "Images in a batch over the size it was padded to.");
  prometheus::Family<prometheus::Counter>& padding_items =
      counter("padding_items_total", "Padding run in place of images.");
  HistogramFamily& cost_model_error = histogram(
      "cost_model_error_ratio",
      "How long a batch took over how long it was predicted to take.");
  prometheus::Family<prometheus::Counter>& capture_failures =
      counter("graph_capture_failures_total",
              "CUDA graphs of batches that could not be recorded.");
  prometheus::Family<prometheus::Counter>& rejections =
      counter("admission_rejections_total",
              "Images refused before a batch took them, by reason and queue.");
  prometheus::Family<prometheus::Counter>& item_errors = counter(
      "item_errors_total", "Images that ended with an error, by reason.");
  prometheus::Family<prometheus::Counter>& deadline_misses =
      counter("deadline_misses_total",
              "Images finished late or expired, by the stage it was seen in.");
  prometheus::Family<prometheus::Gauge>& in_flight =
      gauge("in_flight_requests",
            "Requests being handled, until their answers are sent.");
  prometheus::Family<prometheus::Gauge>& decode_busy =
      gauge("decode_threads_busy", "Decode threads at work.");
  prometheus::Family<prometheus::Gauge>& decode_queue =
      gauge("decode_queue_items", "Images waiting for a decode thread.");
  prometheus::Family<prometheus::Counter>& decode_failures =
      counter("image_decode_failures_total", "Images that were not decoded.");
  HistogramFamily& image_pixels =
      histogram("image_pixels", "Pixels of the images decoded.");
  HistogramFamily& request_bytes =
      histogram("request_bytes", "Size of request messages.");
  prometheus::Family<prometheus::Gauge>& model_state =
      gauge("model_state", "1 for the state that a model version is in.");
  prometheus::Family<prometheus::Gauge>& model_alive = gauge(
      "model_alive",
      "0 while a batch of a loaded model hangs or its device has failed.");
  prometheus::Family<prometheus::Counter>& log_lines_dropped = counter(
      "log_lines_dropped_total", "Lines of the log that nobody read in time.");
  prometheus::Family<prometheus::Counter>& trace_spans_exported =
      counter("trace_spans_exported_total",
              "Spans that the file or the collector has taken.");
  prometheus::Family<prometheus::Counter>& trace_spans_dropped =
      counter("trace_spans_dropped_total",
              "Spans that were not taken in time or not at all.");
  prometheus::Family<prometheus::Counter>& connections_refused =
      counter("connections_refused_total",
              "Connections that the server ended: there were too many, or they "
              "reset too many calls.");
  prometheus::Family<prometheus::Counter>& unauthorized =
      counter("unauthorized_total",
              "Calls refused because of who made them, by reason.");
  prometheus::Family<prometheus::Counter>& tls_handshake_failures =
      counter("tls_handshake_failures_total",
              "Connections that failed before they were TLS.");
  prometheus::Family<prometheus::Counter>& file_reloads =
      counter("security_reloads_total",
              "Changes of the files of tokens and TLS, by whether they were "
              "taken.");
  prometheus::Family<prometheus::Gauge>& certificate_expiry =
      gauge("tls_certificate_expiry_timestamp_seconds",
            "When the server's certificate expires, in Unix time.");
  HistogramFamily& load_duration =
      histogram("model_load_duration_seconds",
                "Reading, checking and warming up a model version.");
  prometheus::Family<prometheus::Counter>& reloads =
      counter("model_reloads_total",
              "Loads of model versions after the start, by result.");

  std::array<prometheus::Gauge*, kMethodCount> in_flight_by_method;
  std::array<ShardedHistogram*, kMethodCount> bytes_by_method;
  // By format; null until first observed.
  std::array<std::atomic<ShardedHistogram*>, 6> pixels_by_format = {};
  prometheus::Gauge& busy = decode_busy.Add({});
  prometheus::Gauge& queued = decode_queue.Add({});
  prometheus::Counter& lines_dropped = log_lines_dropped.Add({});
  prometheus::Counter& spans_exported = trace_spans_exported.Add({});
  prometheus::Counter& spans_dropped = trace_spans_dropped.Add({});
  prometheus::Counter& handshake_failures = tls_handshake_failures.Add({});
  prometheus::Counter& grpc_connections_refused =
      connections_refused.Add({{"port", "grpc"}});
  prometheus::Counter& http_connections_refused =
      connections_refused.Add({{"port", "http"}});

  explicit MetricFamilies(const BuildInfo& build);
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_METRIC_FAMILIES_H_
