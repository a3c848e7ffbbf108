#include "server/tracing/span_exporter.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"
#include "nlohmann/json.hpp"
#include "server/threads/thread_name.h"

namespace sfmamba::tracing {
namespace {

constexpr int kMaxAttempts = 4;
constexpr absl::Duration kFirstDelay = absl::Milliseconds(500);

size_t SizeOf(const Span& span) { return 1 + span.links.size(); }

using nlohmann::json;

// Numbers of opentelemetry/proto/trace/v1/trace.proto.
constexpr int kInternalKind = 1, kServerKind = 2;
constexpr int kErrorCode = 2;
// Bits of Span.flags: it is known whether the parent is another process's, and
// it is.
constexpr int kHasIsRemote = 0x100, kIsRemote = 0x200;
constexpr int kSampled = 1;

json Value(const std::variant<int64_t, std::string>& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) {
    // protobuf's JSON has 64-bit integers as strings.
    return {{"intValue", absl::StrCat(*number)}};
  }
  return {{"stringValue", std::get<std::string>(value)}};
}

json KeyValue(const char* key,
              const std::variant<int64_t, std::string>& value) {
  return {{"key", key}, {"value", Value(value)}};
}

std::string Nanos(absl::Time time) {
  return absl::StrCat(absl::ToUnixNanos(time));
}

json ToJson(const SpanContext& context) {
  return {{"traceId", Hex(context.trace)},
          {"spanId", observability::Hex(context.span)}};
}

json ToJson(const Span& span) {
  json result = ToJson(span.context);
  if (span.parent != 0) {
    result["parentSpanId"] = observability::Hex(span.parent);
  }
  if (!span.tracestate.empty()) result["traceState"] = span.tracestate;
  result["name"] = span.name;
  result["kind"] = span.is_server ? kServerKind : kInternalKind;
  result["flags"] = kSampled | kHasIsRemote |
                    (span.is_server && span.parent != 0 ? kIsRemote : 0);
  result["startTimeUnixNano"] = Nanos(span.start);
  result["endTimeUnixNano"] = Nanos(span.end);
  json& attributes = result["attributes"] = json::array();
  for (const Attribute& attribute : span.attributes) {
    attributes.push_back(KeyValue(attribute.key, attribute.value));
  }
  if (!span.links.empty()) {
    json& links = result["links"] = json::array();
    for (const SpanContext& link : span.links) links.push_back(ToJson(link));
  }
  if (!span.error.empty()) {
    result["status"] = {{"code", kErrorCode}, {"message", span.error}};
  }
  return result;
}

}  // namespace

absl::Duration RetryDelay(int attempts) {
  if (attempts >= kMaxAttempts) return absl::ZeroDuration();
  return kFirstDelay * (1 << (attempts - 1));
}

SpanExporter::SpanExporter(Options options, std::unique_ptr<SpanSink> sink)
    : options_(std::move(options)),
      sink_(std::move(sink)),
      thread_([this] { Loop(); }) {}

SpanExporter::~SpanExporter() {
  StartStopping(absl::ZeroDuration());
  thread_.join();
}

void SpanExporter::Add(std::vector<Span> spans) {
  absl::MutexLock lock(&mu_);
  for (Span& span : spans) {
    if (stopping_ || size_ + SizeOf(span) > options_.max_spans) {
      ++counts_.dropped;
      continue;
    }
    size_ += SizeOf(span);
    spans_.push_back(std::move(span));
  }
  if (spans_.size() >= options_.batch) changed_.SignalAll();
}

void SpanExporter::StartStopping(absl::Duration limit) {
  absl::MutexLock lock(&mu_);
  stopping_ = true;
  give_up_ = std::min(give_up_, base::SteadyNow() + limit);
  changed_.SignalAll();
}

void SpanExporter::AwaitStopped() {
  absl::MutexLock lock(&mu_);
  changed_.Await(&mu_, give_up_ - base::SteadyNow(),
                 [this]()
                     ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return ended_; });
}

SpanExporter::Counts SpanExporter::TakeCounts() {
  absl::MutexLock lock(&mu_);
  return std::exchange(counts_, Counts());
}

void SpanExporter::Loop() {
  server::NameThisThread(absl::StrCat("spans-", options_.name));
  bool failing = false;
  while (true) {
    const std::vector<Span> spans = NextBatch();
    if (spans.empty()) break;
    const absl::Status status = Write(spans);
    {
      absl::MutexLock lock(&mu_);
      (status.ok() ? counts_.exported : counts_.dropped) += spans.size();
    }
    // The server's end is no failure of the sink.
    if (absl::IsCancelled(status)) continue;
    if (failing == status.ok()) options_.changed(status);
    failing = !status.ok();
  }
  absl::MutexLock lock(&mu_);
  ended_ = true;
  changed_.SignalAll();
}

std::vector<Span> SpanExporter::NextBatch() {
  const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopping_ || !spans_.empty();
  };
  const auto enough = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopping_ || spans_.size() >= options_.batch;
  };
  absl::MutexLock lock(&mu_, absl::Condition(&any));
  changed_.Await(&mu_, options_.delay, enough);
  const size_t count = std::min(spans_.size(), options_.batch);
  const auto end = spans_.begin() + count;
  std::vector<Span> batch(std::make_move_iterator(spans_.begin()),
                          std::make_move_iterator(end));
  spans_.erase(spans_.begin(), end);
  for (const Span& span : batch) size_ -= SizeOf(span);
  return batch;
}

absl::Status SpanExporter::Write(const std::vector<Span>& spans) {
  if (GivesUp()) return absl::CancelledError("the server ends");
  const std::string request = OtlpJson(options_.resource, spans);
  for (int attempts = 1;; ++attempts) {
    const absl::Status status =
        sink_->Write(request, [this] { return GivesUp(); });
    // Spans that the sink will never take are not sent again.
    if (!absl::IsUnavailable(status)) return status;
    const absl::Duration delay = RetryDelay(attempts);
    if (delay == absl::ZeroDuration() || !Pause(delay)) return status;
  }
}

bool SpanExporter::Pause(absl::Duration delay) {
  absl::MutexLock lock(&mu_);
  return !changed_.Await(
      &mu_, delay,
      [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_; });
}

bool SpanExporter::GivesUp() const {
  absl::MutexLock lock(&mu_);
  return base::SteadyNow() >= give_up_;
}

std::string OtlpJson(const Resource& resource, const std::vector<Span>& spans) {
  json listed = json::array();
  for (const Span& span : spans) listed.push_back(ToJson(span));
  const json scope = {{"scope", {{"name", "sfmamba"}}},
                      {"spans", std::move(listed)}};
  const json request = {
      {"resourceSpans",
       json::array(
           {{{"resource",
              {{"attributes",
                json::array({KeyValue("service.name", resource.service),
                             KeyValue("service.version", resource.version),
                             KeyValue("host.name", resource.host)})}}},
             {"scopeSpans", json::array({scope})}}})}};
  // Texts of clients may not be UTF-8, for which dump() would throw otherwise.
  return request.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace sfmamba::tracing
