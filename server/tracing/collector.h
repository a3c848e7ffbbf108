#ifndef SFMAMBA_SERVER_TRACING_COLLECTOR_H_
#define SFMAMBA_SERVER_TRACING_COLLECTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/tracing/span.h"

namespace sfmamba::tracing {

// Sends spans to an OpenTelemetry collector, in OTLP over gRPC. Spans wait in a
// queue. A thread of OpenTelemetry's SDK sends them in batches. If the queue is
// full, or if the collector does not accept a batch within `timeout`, the spans
// are dropped and counted.
//
// Thread-safe. Add() never blocks.
class Collector {
 public:
  struct Options {
    std::string endpoint;  // A URL that CheckEndpoint() accepts.
    std::string ca_file;   // A PEM file. If empty, the system's CAs are used.
    std::string version;   // The server's version.
    std::string host;      // The name of the server's machine.
    int64_t max_spans = 8192;  // The maximum number of waiting spans.
    // The time limit for sending one batch.
    absl::Duration timeout = absl::Seconds(5);
    // Called with an error when batches begin to fail, and with OK when the
    // next batch is accepted. The SDK's thread calls this function.
    std::function<void(const absl::Status&)> changed = [](const absl::Status&) {
    };
  };
  struct Counts {
    int64_t exported = 0;
    int64_t dropped = 0;
  };

  explicit Collector(Options options);
  // Drops the waiting spans. Waits up to `timeout` for a batch that is being
  // sent, because sending cannot be interrupted.
  ~Collector();

  void Add(const std::vector<Span>& spans);

  // Refuses new spans and sends the waiting ones. Returns false if `limit`
  // passes before all spans are sent. The remaining spans are then dropped.
  bool Stop(absl::Duration limit);

  // Returns the numbers of spans that were exported and dropped since the last
  // call.
  Counts TakeCounts();

 private:
  class Exporter;
  struct Sdk;

  // Called by the SDK's thread after an attempt to send `spans` spans.
  void Sent(int64_t spans, bool accepted);

  const Options options_;
  std::atomic<int64_t> waiting_{0};
  std::atomic<int64_t> exported_{0};
  std::atomic<int64_t> dropped_{0};
  std::atomic<bool> stopping_{false};  // If true, Add() drops spans.
  std::atomic<bool> stopped_{false};   // If true, the SDK's thread drops spans.
  bool failing_ = false;               // Used only by the SDK's thread.
  // This member is the last, because the SDK's thread uses the members above.
  const std::unique_ptr<Sdk> sdk_;
};

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_COLLECTOR_H_
