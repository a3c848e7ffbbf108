#include "client/bench/trace.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace sfmamba::client {
namespace {

constexpr char kHeading[] = "time\tmethod\tpictures\tdeadline\tpriority\tclass";
constexpr char kDefault[] = "-";
constexpr size_t kMinFields = 2, kMaxFields = 5;  // Per line, without the time.
constexpr size_t kMaxPictures = 64;  // The server accepts no more per request.

absl::Status Expected(absl::string_view what, absl::string_view got) {
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", what, ", got '", got, "'"));
}

absl::Status ParseTime(absl::string_view text, absl::Duration* time) {
  if (!absl::ParseDuration(text, time) || *time < absl::ZeroDuration() ||
      *time == absl::InfiniteDuration()) {
    return Expected("a time such as 1.5s or 20ms", text);
  }
  return absl::OkStatus();
}

// Parses "classify" or "classify/MODEL". The model's name may contain slashes.
absl::Status ParseMethod(absl::string_view text, TraceRequest* request) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('/', 1));
  request->method = std::string(parts.first);
  request->model = std::string(parts.second);
  if (request->method != "classify" && request->method != "detect" &&
      request->method != "segment") {
    return Expected("classify, detect or segment, and perhaps /MODEL", text);
  }
  return absl::OkStatus();
}

absl::Status ParsePictures(absl::string_view text, TraceRequest* request) {
  request->pictures = absl::StrSplit(text, ',');
  if (request->pictures.size() > kMaxPictures) {
    return Expected("at most 64 pictures",
                    absl::StrCat(request->pictures.size()));
  }
  for (const std::string& picture : request->pictures) {
    if (picture.empty() || picture == kDefault) {
      return Expected("pictures with commas between them", text);
    }
    if (absl::StartsWith(picture, "tensor:") && picture != "tensor:fp32" &&
        picture != "tensor:uint8") {
      return Expected("tensor:fp32 or tensor:uint8", picture);
    }
  }
  return absl::OkStatus();
}

absl::Status ParseDeadline(absl::string_view text, TraceRequest* request) {
  if (text == kDefault) return absl::OkStatus();
  absl::Duration deadline;
  if (!absl::ParseDuration(text, &deadline) ||
      deadline <= absl::ZeroDuration()) {
    return Expected("a deadline such as 200ms, or -", text);
  }
  request->deadline = deadline;
  return absl::OkStatus();
}

std::string PriorityName(const TraceRequest& request) {
  return request.priority == v1::RequestOptions::PRIORITY_UNSPECIFIED
             ? kDefault
             : absl::AsciiStrToLower(
                   v1::RequestOptions::Priority_Name(request.priority));
}

std::string MethodName(const TraceRequest& request) {
  return request.model.empty()
             ? request.method
             : absl::StrCat(request.method, "/", request.model);
}

// Parses a line of a trace, without the line's first field, the time.
absl::Status ParseRequest(absl::string_view text, TraceRequest* request) {
  std::vector<absl::string_view> fields = absl::StrSplit(text, '\t');
  if (fields.size() < kMinFields || fields.size() > kMaxFields) {
    return Expected("a time and 2 to 5 fields more, tabs between them", text);
  }
  fields.resize(kMaxFields, kDefault);
  absl::Status status = ParseMethod(fields[0], request);
  if (status.ok()) status = ParsePictures(fields[1], request);
  if (status.ok()) status = ParseDeadline(fields[2], request);
  if (status.ok()) status = ParsePriority(fields[3], &request->priority);
  request->class_name = fields[4] == kDefault ? DefaultClassName(*request)
                                              : std::string(fields[4]);
  return status;
}

}  // namespace

absl::Status ParsePriority(absl::string_view text,
                           v1::RequestOptions::Priority* priority) {
  *priority = v1::RequestOptions::PRIORITY_UNSPECIFIED;
  if (text == kDefault) return absl::OkStatus();
  if (!v1::RequestOptions::Priority_Parse(absl::AsciiStrToUpper(text),
                                          priority) ||
      *priority == v1::RequestOptions::PRIORITY_UNSPECIFIED) {
    return Expected("high, normal, low or -", text);
  }
  return absl::OkStatus();
}

std::string DefaultClassName(const TraceRequest& request) {
  return request.priority == v1::RequestOptions::PRIORITY_UNSPECIFIED
             ? MethodName(request)
             : absl::StrCat(MethodName(request), " ", PriorityName(request));
}

absl::StatusOr<Trace> ParseTrace(absl::string_view text) {
  Trace trace;
  // Maps the text that follows the time field of a line to the index of the
  // line's request in `trace.requests`. So lines that differ only in their time
  // share one request.
  std::map<absl::string_view, int> known;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    absl::ConsumeSuffix(&line, "\r");
    if (line.empty() || line.front() == '#' || line == kHeading) continue;
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits('\t', 1));
    Trace::Arrival arrival;
    absl::Status status = ParseTime(parts.first, &arrival.at);
    const auto [request, is_new] =
        known.try_emplace(parts.second, trace.requests.size());
    if (status.ok() && is_new) {
      status = ParseRequest(parts.second, &trace.requests.emplace_back());
    }
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", status.message()));
    }
    arrival.request = request->second;
    trace.arrivals.push_back(arrival);
  }
  std::stable_sort(trace.arrivals.begin(), trace.arrivals.end(),
                   [](const Trace::Arrival& a, const Trace::Arrival& b) {
                     return a.at < b.at;
                   });
  return trace;
}

std::string FormatTrace(const Trace& trace) {
  std::vector<std::string> requests;
  for (const TraceRequest& request : trace.requests) {
    requests.push_back(absl::StrCat(
        MethodName(request), "\t", absl::StrJoin(request.pictures, ","), "\t",
        request.deadline.has_value() ? absl::FormatDuration(*request.deadline)
                                     : kDefault,
        "\t", PriorityName(request), "\t",
        request.class_name.empty() ? kDefault : request.class_name));
  }
  std::string text = absl::StrCat(kHeading, "\n");
  for (const Trace::Arrival& arrival : trace.arrivals) {
    absl::StrAppend(&text, absl::ToInt64Nanoseconds(arrival.at), "ns\t",
                    requests[arrival.request], "\n");
  }
  return text;
}

}  // namespace sfmamba::client
