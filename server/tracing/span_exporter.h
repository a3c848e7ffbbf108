#ifndef SFMAMBA_SERVER_TRACING_SPAN_EXPORTER_H_
#define SFMAMBA_SERVER_TRACING_SPAN_EXPORTER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/threads/steady_cond_var.h"
#include "server/tracing/span.h"

namespace sfmamba::tracing {

// Who made the spans.
struct Resource {
  std::string service = "sfmamba";
  std::string version;
  std::string host;
};

// An OTLP ExportTraceServiceRequest in JSON, on one line: ids in hexadecimal,
// numbers of 64 bits as texts. Bytes that are not UTF-8 are replaced.
std::string OtlpJson(const Resource& resource, const std::vector<Span>& spans);

// Writes spans to their destination. Used by one thread, which may wait in it.
class SpanSink {
 public:
  virtual ~SpanSink() = default;

  // Writes the JSON of an OTLP ExportTraceServiceRequest. UNAVAILABLE if it may
  // succeed later. While it waits it asks `stop`, at least every 50 ms, whether
  // to give up.
  virtual absl::Status Write(const std::string& request,
                             absl::FunctionRef<bool()> stop) = 0;
};

// How long to wait before the next attempt to write spans, or ZeroDuration()
// if they are to be given up. `attempts` have failed so far.
absl::Duration RetryDelay(int attempts);

// Hands spans to a sink, many at a time, on a thread of its own. What does not
// fit into the queue, and what the sink does not take, is dropped and counted.
// What may be taken later is tried again, a few times.
//
// Thread-safe. Add() never blocks.
class SpanExporter {
 public:
  struct Options {
    Resource resource;
    std::string name;         // The sink's, for its thread: up to 9 letters.
    size_t max_spans = 8192;  // Most waiting spans; a link counts as a span.
    size_t batch = 512;       // Most spans written together.
    // Time that a span waits for others to be written with it.
    absl::Duration delay = absl::Seconds(1);
    // Called on the thread with the sink's error when it begins to fail, and
    // with OK when it takes spans again.
    std::function<void(const absl::Status&)> changed = [](const absl::Status&) {
    };
  };
  struct Counts {
    int64_t exported = 0;
    int64_t dropped = 0;
  };

  SpanExporter(Options options, std::unique_ptr<SpanSink> sink);
  // Drops what has not been written yet; see StartStopping().
  ~SpanExporter();

  void Add(std::vector<Span> spans) ABSL_LOCKS_EXCLUDED(mu_);

  // Takes no more spans. Those that wait are written, or dropped at `limit`
  // from now.
  void StartStopping(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until that is done, or is not by then.
  void AwaitStopped() ABSL_LOCKS_EXCLUDED(mu_);

  // Returns what happened since the last call.
  Counts TakeCounts() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Loop();  // The body of thread_.
  // Waits for spans to be written. Returns none once all are, while stopping.
  std::vector<Span> NextBatch() ABSL_LOCKS_EXCLUDED(mu_);
  // Writes `spans`, in several attempts if need be.
  absl::Status Write(const std::vector<Span>& spans) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits; false if it is time to end first.
  bool Pause(absl::Duration delay) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether no more time is left to write in.
  bool GivesUp() const ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  const std::unique_ptr<SpanSink> sink_;  // Used by thread_ only.

  mutable absl::Mutex mu_;
  // Signalled when a batch is full and when stopping_ or ended_ changes.
  server::SteadyCondVar changed_;
  std::deque<Span> spans_ ABSL_GUARDED_BY(mu_);
  size_t size_ ABSL_GUARDED_BY(mu_) = 0;  // Spans and links in spans_.
  Counts counts_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;  // All is written or dropped.
  absl::Time give_up_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  std::thread thread_;  // Last: uses everything above.
};

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_SPAN_EXPORTER_H_
