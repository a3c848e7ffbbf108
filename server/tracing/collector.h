#ifndef SFMAMBA_SERVER_TRACING_COLLECTOR_H_
#define SFMAMBA_SERVER_TRACING_COLLECTOR_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/tracing/span_exporter.h"

namespace sfmamba::tracing {

// The URL that spans are posted to: `endpoint`, an http:// or https:// URL,
// with OTLP's path /v1/traces if it has none. INVALID_ARGUMENT, naming
// trace_endpoint, for any other text and for one with a user or a password.
absl::StatusOr<std::string> TracesUrl(absl::string_view endpoint);

// Converts the HTTP code of an answer to a post: OK, UNAVAILABLE if the spans
// may be accepted later, else FAILED_PRECONDITION.
absl::Status CollectorStatus(long code);  // NOLINT: libcurl's type.

// Posts requests to an OpenTelemetry collector: OTLP over HTTP in JSON. Keeps
// its connection; follows no redirection and uses no proxy.
//
// Thread-compatible.
class Collector final : public SpanSink {
 public:
  struct Options {
    std::string url;      // A result of TracesUrl().
    std::string ca_file;  // PEM; empty: the system's authorities.
    absl::Duration connect_time = absl::Seconds(2);
    absl::Duration time = absl::Seconds(5);  // For one post.
  };

  explicit Collector(const Options& options);
  ~Collector() override;

  // UNAVAILABLE also if it cannot be reached or does not answer in time;
  // CANCELLED once `stop` says so.
  absl::Status Write(const std::string& request,
                     absl::FunctionRef<bool()> stop) override;

 private:
  struct Handles;
  const std::unique_ptr<Handles> handles_;  // libcurl's.
};

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_COLLECTOR_H_
