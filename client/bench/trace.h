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

// One of the requests that a trace sends, perhaps many times.
struct TraceRequest {
  std::string method = "classify";  // Or "detect" or "segment".
  std::string model;  // Empty: the only or default one of what is asked for.
  std::vector<std::string> pictures;  // Paths, "tensor:fp32", "tensor:uint8".
  absl::optional<absl::Duration> deadline;  // Unset: the sender's choice.
  v1::RequestOptions::Priority priority =
      v1::RequestOptions::PRIORITY_UNSPECIFIED;
  std::string class_name;  // Requests of one class are counted together.
};

// What is sent when.
struct Trace {
  struct Arrival {
    absl::Duration at;  // Since the start, >= 0.
    int request = 0;    // Index into `requests`.
  };

  std::vector<TraceRequest> requests;
  std::vector<Arrival> arrivals;  // By time.
};

// Reads the text that docs/operations.md describes ("Load"): a line for each
// arrival, with fields that tabs separate. Lines may come in any order: equal
// times keep theirs. INVALID_ARGUMENT names the line and the field.
absl::StatusOr<Trace> ParseTrace(absl::string_view text);

// "high", "normal", "low", or "-" for none; INVALID_ARGUMENT otherwise.
absl::Status ParsePriority(absl::string_view text,
                           v1::RequestOptions::Priority* priority);

// The class of a request whose line names none: "classify/m", "detect high".
std::string DefaultClassName(const TraceRequest& request);

// The text that ParseTrace() reads, times in whole nanoseconds.
std::string FormatTrace(const Trace& trace);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_BENCH_TRACE_H_
