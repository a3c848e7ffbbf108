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

// Sends spans to an OpenTelemetry collector as OTLP over gRPC. Spans wait in a
// queue, and a thread of OpenTelemetry's SDK sends them in batches. The
// collector drops and counts the spans that do not fit into the queue and
// those that are not accepted within `timeout`.
//
// Thread-safe. Add() never blocks.
class Collector {
 public:
  struct Options {
    std::string endpoint;      // CheckEndpoint() accepts it.
    std::string ca_file;       // PEM; empty: the system's authorities.
    std::string version;       // The server's.
    std::string host;          // The name of its machine.
    int64_t max_spans = 8192;  // Most waiting spans.
    absl::Duration timeout = absl::Seconds(5);  // For one batch.
    // Called by the SDK's thread with the error when batches begin to fail, and
    // with OK when one is accepted again.
    std::function<void(const absl::Status&)> changed = [](const absl::Status&) {
    };
  };
  struct Counts {
    int64_t exported = 0;
    int64_t dropped = 0;
  };

  explicit Collector(Options options);
  // Drops the waiting spans. A batch that is being sent cannot be interrupted
  // and is waited for, up to `timeout`.
  ~Collector();

  void Add(const std::vector<Span>& spans);

  // Takes no more spans and sends the waiting ones. Returns false if `limit`
  // passes first. Then the remaining spans are dropped.
  bool Stop(absl::Duration limit);

  // Returns what happened since the last call.
  Counts TakeCounts();

 private:
  class Exporter;
  struct Sdk;

  // Called by the SDK's thread once it has tried to send `spans` spans.
  void Sent(int64_t spans, bool accepted);

  const Options options_;
  std::atomic<int64_t> waiting_{0};
  std::atomic<int64_t> exported_{0};
  std::atomic<int64_t> dropped_{0};
  std::atomic<bool> stopping_{false};  // Add() drops spans.
  std::atomic<bool> stopped_{false};   // The SDK's thread drops spans.
  bool failing_ = false;               // Used by the SDK's thread only.
  const std::unique_ptr<Sdk> sdk_;     // Last: its thread uses the above.
};

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_COLLECTOR_H_
