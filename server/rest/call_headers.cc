#include "server/rest/call_headers.h"

#include <cstdint>
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
constexpr size_t kMaxShown = 64;  // Most bytes shown of a refused value.

absl::Duration GrpcUnit(char letter) {
  switch (letter) {
    case 'H':
      return absl::Hours(1);
    case 'M':
      return absl::Minutes(1);
    case 'S':
      return absl::Seconds(1);
    case 'm':
      return absl::Milliseconds(1);
    case 'u':
      return absl::Microseconds(1);
    case 'n':
      return absl::Nanoseconds(1);
    default:
      return absl::ZeroDuration();
  }
}

absl::Status Refuse(const char* header, absl::string_view value,
                    absl::string_view expected) {
  return server::InvalidField(
      header, absl::StrCat("header ", header, ": got \"",
                           absl::CHexEscape(value.substr(0, kMaxShown)),
                           "\", expected ", expected));
}

absl::StatusOr<absl::Duration> ParseGrpcTimeout(absl::string_view value) {
  constexpr char kExpected[] =
      "up to 8 digits, not all 0, and a unit of H, M, S, m, u, n";
  if (value.size() < 2 || value.size() > kMaxTimeoutDigits + 1) {
    return Refuse(kGrpcTimeout, value, kExpected);
  }
  int64_t count = 0;
  for (char digit : value.substr(0, value.size() - 1)) {
    if (!absl::ascii_isdigit(digit)) {
      return Refuse(kGrpcTimeout, value, kExpected);
    }
    count = count * 10 + (digit - '0');
  }
  const absl::Duration timeout = count * GrpcUnit(value.back());
  if (timeout <= absl::ZeroDuration()) {
    return Refuse(kGrpcTimeout, value, kExpected);
  }
  return timeout;
}

absl::StatusOr<absl::Duration> ParseRequestTimeout(absl::string_view value) {
  absl::Duration timeout;
  double seconds = 0;
  if (absl::SimpleAtod(value, &seconds)) {
    timeout = absl::Seconds(seconds);  // Zero for NaN.
    if (seconds != seconds) timeout = absl::ZeroDuration();
  } else if (!absl::ParseDuration(value, &timeout)) {
    timeout = absl::ZeroDuration();
  }
  if (timeout <= absl::ZeroDuration()) {
    return Refuse(kRequestTimeout, value,
                  "seconds above 0, such as 1.5, or a duration, such as 1.5s");
  }
  return timeout;
}

// The time that the request may take; infinite if it does not say.
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

absl::StatusOr<rpc::CallInfo> CallOf(const http::HttpRequest& request,
                                     absl::Time now) {
  const absl::StatusOr<absl::Duration> timeout = TimeoutOf(request);
  if (!timeout.ok()) return timeout.status();
  rpc::CallInfo call;
  call.peer = request.peer;
  call.caller = request.caller;
  call.system = "http";
  // W3C Trace Context: several traceparents count as none.
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
