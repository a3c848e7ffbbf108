#ifndef SFMAMBA_CLIENT_BENCH_TRACE_H_
#define SFMAMBA_CLIENT_BENCH_TRACE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// A request of a trace. A trace may send it many times.
struct TraceRequest {
  std::string method = "classify";  // "classify", "detect" or "segment".
  // If empty, the server uses its default model for `method`.
  std::string model;
  std::vector<std::string> pictures;  // Paths, "tensor:fp32", "tensor:uint8".
  // If unset, the sender chooses the deadline.
  absl::optional<absl::Duration> deadline;
  v1::RequestOptions::Priority priority =
      v1::RequestOptions::PRIORITY_UNSPECIFIED;
  std::string class_name;  // Requests of one class are counted together.
};

// A sequence of requests and the times at which to send them.
struct Trace {
  struct Arrival {
    // Counted from the start. Must not be negative.
    absl::Duration at;
    int request = 0;  // An index into `requests`.
  };

  std::vector<TraceRequest> requests;
  // The arrivals are ordered by time.
  std::vector<Arrival> arrivals;
};

// Reads a text in the format of docs/operations.md ("Load"). Each line is an
// arrival, with tabs between its fields. Lines are sorted by time, and lines of
// equal times keep their order. If a line is wrong, returns INVALID_ARGUMENT
// with the number of the line and what was expected in this line.
absl::StatusOr<Trace> ParseTrace(absl::string_view text);

// Parses "high", "normal" or "low", or "-" for no priority. Returns
// INVALID_ARGUMENT for any other text.
absl::Status ParsePriority(absl::string_view text,
                           v1::RequestOptions::Priority* priority);

// Returns the class name for a request that has no class name of its own. The
// name is made of the request's method, model and priority, for example
// "classify/m" or "detect high".
std::string DefaultClassName(const TraceRequest& request);

// Returns the trace in the format that ParseTrace() reads. Times are written in
// whole nanoseconds.
std::string FormatTrace(const Trace& trace);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_BENCH_TRACE_H_
