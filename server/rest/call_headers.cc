#include "server/rest/call_headers.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/errors/reasons.h"

namespace sfmamba::rest {
namespace {

constexpr char kGrpcTimeout[] = "grpc-timeout";
constexpr char kRequestTimeout[] = "x-request-timeout";
constexpr size_t kMaxTimeoutDigits = 8;
// The maximum number of bytes of a rejected value in an error message.
constexpr size_t kMaxShown = 64;

// kGrpcUnits contains the letters of gRPC's time units. kUnits contains
// Abseil's names of these units in the same order.
constexpr absl::string_view kGrpcUnits = "HMSmun";
constexpr const char* kUnits[] = {"h", "m", "s", "ms", "us", "ns"};

absl::Status Refuse(const char* header, absl::string_view value,
                    absl::string_view expected) {
  return server::InvalidField(
      header,
      absl::StrCat("got \"", absl::CHexEscape(value.substr(0, kMaxShown)),
                   "\", expected ", expected));
}

absl::StatusOr<absl::Duration> ParseGrpcTimeout(absl::string_view value) {
  constexpr char kExpected[] =
      "up to 8 digits, not all 0, and a unit of H, M, S, m, u, n";
  const absl::string_view digits = value.substr(0, value.size() - 1);
  const size_t unit =
      value.empty() ? kGrpcUnits.npos : kGrpcUnits.find(value.back());
  absl::Duration timeout;
  if (unit == kGrpcUnits.npos || digits.size() > kMaxTimeoutDigits ||
      !std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) ||
      !absl::ParseDuration(absl::StrCat(digits, kUnits[unit]), &timeout) ||
      timeout <= absl::ZeroDuration()) {
    return Refuse(kGrpcTimeout, value, kExpected);
  }
  return timeout;
}

absl::StatusOr<absl::Duration> ParseRequestTimeout(absl::string_view value) {
  absl::Duration timeout;
  double seconds = 0;
  if (absl::SimpleAtod(value, &seconds)) {
    timeout = absl::Seconds(seconds > 0 ? seconds : 0);  // NaN becomes 0.
  } else if (!absl::ParseDuration(value, &timeout)) {
    timeout = absl::ZeroDuration();
  }
  if (timeout <= absl::ZeroDuration()) {
    return Refuse(kRequestTimeout, value,
                  "seconds above 0, such as 1.5, or a duration, such as 1.5s");
  }
  return timeout;
}

// Returns the timeout of the request. Returns InfiniteDuration() if the request
// has no timeout header.
absl::StatusOr<absl::Duration> TimeoutOf(const http::HttpRequest& request) {
  const size_t count = request.headers.count(kGrpcTimeout) +
                       request.headers.count(kRequestTimeout);
  if (count == 0) return absl::InfiniteDuration();
  if (count > 1) {
    return server::InvalidField(
        kRequestTimeout,
        absl::StrCat("got ", count, " headers of ", kGrpcTimeout, " and ",
                     kRequestTimeout, ", expected at most one"));
  }
  const auto grpc = request.headers.find(kGrpcTimeout);
  if (grpc != request.headers.end()) return ParseGrpcTimeout(grpc->second);
  return ParseRequestTimeout(request.headers.find(kRequestTimeout)->second);
}

}  // namespace

absl::StatusOr<prediction::CallInfo> CallOf(const http::HttpRequest& request,
                                            absl::Time now) {
  const absl::StatusOr<absl::Duration> timeout = TimeoutOf(request);
  if (!timeout.ok()) return timeout.status();
  prediction::CallInfo call;
  call.peer = request.peer;
  call.caller = request.caller;
  call.system = "http";
  // If a request has several traceparent headers, W3C Trace Context requires
  // that the server ignores all of them.
  if (request.headers.count("traceparent") == 1) {
    call.traceparent = std::string(Header(request, "traceparent"));
  }
  const auto states = request.headers.equal_range("tracestate");
  for (auto state = states.first; state != states.second; ++state) {
    absl::StrAppend(&call.tracestate, call.tracestate.empty() ? "" : ",",
                    state->second);
  }
  call.deadline = now + *timeout;
  return call;
}

absl::string_view Header(const http::HttpRequest& request,
                         absl::string_view name) {
  const auto found = request.headers.find(std::string(name));
  if (found == request.headers.end()) return "";
  return found->second;
}

}  // namespace sfmamba::rest
