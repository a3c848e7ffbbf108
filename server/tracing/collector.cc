#include "server/tracing/collector.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <variant>

#include "absl/base/call_once.h"
#include "absl/strings/match.h"
#include "base/utf8.h"
#include "opentelemetry/exporters/otlp/otlp_grpc_exporter_factory.h"
#include "opentelemetry/sdk/common/global_log_handler.h"
#include "opentelemetry/sdk/resource/resource.h"
#include "opentelemetry/sdk/trace/batch_span_processor_factory.h"
#include "opentelemetry/sdk/trace/batch_span_processor_options.h"
#include "opentelemetry/sdk/trace/exporter.h"
#include "opentelemetry/sdk/trace/processor.h"
#include "opentelemetry/sdk/trace/recordable.h"
#include "server/threads/thread_name.h"

namespace sfmamba::tracing {
namespace {

namespace nostd = opentelemetry::nostd;
namespace otlp = opentelemetry::exporter::otlp;
namespace sdk = opentelemetry::sdk;
namespace api = opentelemetry::trace;

using opentelemetry::common::AttributeValue;
using opentelemetry::common::SystemTimestamp;
using sdk::common::ExportResult;
using sdk::common::internal_log::GlobalLogHandler;
using sdk::common::internal_log::LogHandler;
using sdk::common::internal_log::LogLevel;

// The interval at which the thread of OpenTelemetry's SDK sends the waiting
// spans. If a full batch is waiting, the thread sends the batch immediately.
constexpr std::chrono::milliseconds kDelay(200);
constexpr size_t kBatch = 512;  // The maximum number of spans in a batch.

// Returns the last error that the SDK logged on this thread.
std::string& LastError() {
  thread_local std::string error;
  return error;
}

class ErrorKeeper final : public LogHandler {
 public:
  void Handle(
      LogLevel /*level*/, const char* /*file*/, int /*line*/,
      const char* message,
      const sdk::common::AttributeMap& /*attributes*/) noexcept override {
    LastError() = message;
  }
};

// Stores the SDK's errors in LastError(). By default, the SDK writes them to
// standard output. The SDK has only one log handler per process.
void KeepErrors() {
  static absl::once_flag once;
  absl::call_once(once, [] {
    GlobalLogHandler::SetLogHandler(
        nostd::shared_ptr<LogHandler>(new ErrorKeeper));
    GlobalLogHandler::SetLogLevel(LogLevel::Error);
  });
}

nostd::string_view View(absl::string_view text) {
  return {text.data(), text.size()};
}

void StoreBigEndian(uint64_t value, uint8_t* bytes) {
  for (int i = 0; i < 8; ++i) bytes[i] = value >> (56 - 8 * i) & 0xFF;
}

api::SpanId ToSdk(SpanId id) {
  uint8_t bytes[api::SpanId::kSize];
  StoreBigEndian(id, bytes);
  return api::SpanId(bytes);
}

api::SpanContext ToSdk(const SpanContext& context,
                       absl::string_view tracestate = "") {
  uint8_t trace[api::TraceId::kSize];
  StoreBigEndian(context.trace.high, trace);
  StoreBigEndian(context.trace.low, trace + 8);
  return api::SpanContext(api::TraceId(trace), ToSdk(context.span),
                          api::TraceFlags(api::TraceFlags::kIsSampled), false,
                          tracestate.empty()
                              ? api::TraceState::GetDefault()
                              : api::TraceState::FromHeader(View(tracestate)));
}

}  // namespace

// Sends batches of spans with the SDK's exporter and tells the Collector
// whether this succeeded.
class Collector::Exporter final : public sdk::trace::SpanExporter {
 public:
  explicit Exporter(Collector* collector)
      : collector_(*collector), grpc_(MakeGrpc(collector->options_)) {}

  std::unique_ptr<sdk::trace::Recordable> MakeRecordable() noexcept override {
    return grpc_->MakeRecordable();
  }
  ExportResult Export(
      const nostd::span<std::unique_ptr<sdk::trace::Recordable>>&
          spans) noexcept override {
    server::NameThisThread("spans");
    const ExportResult result = collector_.stopped_.load()
                                    ? ExportResult::kFailure
                                    : grpc_->Export(spans);
    collector_.Sent(static_cast<int64_t>(spans.size()),
                    result == ExportResult::kSuccess);
    return result;
  }
  bool ForceFlush(std::chrono::microseconds timeout) noexcept override {
    return grpc_->ForceFlush(timeout);
  }
  bool Shutdown(std::chrono::microseconds timeout) noexcept override {
    return grpc_->Shutdown(timeout);
  }

 private:
  static std::unique_ptr<sdk::trace::SpanExporter> MakeGrpc(
      const Options& options) {
    // Fields that are not set here get their defaults from the environment
    // variables OTEL_EXPORTER_OTLP_*.
    otlp::OtlpGrpcExporterOptions grpc;
    grpc.endpoint = options.endpoint;
    grpc.use_ssl_credentials = absl::StartsWith(options.endpoint, "https://");
    if (!options.ca_file.empty()) {
      grpc.ssl_credentials_cacert_path = options.ca_file;
    }
    grpc.timeout = absl::ToChronoMicroseconds(options.timeout);
    return otlp::OtlpGrpcExporterFactory::Create(grpc);
  }

  Collector& collector_;
  const std::unique_ptr<sdk::trace::SpanExporter> grpc_;
};

struct Collector::Sdk {
  explicit Sdk(Collector* collector)
      : resource(sdk::resource::Resource::Create(
            {{"service.name", "sfmamba"},
             {"service.version", collector->options_.version},
             {"host.name", collector->options_.host}})) {
    KeepErrors();
    sdk::trace::BatchSpanProcessorOptions options;
    // The SDK's queue holds up to max_spans spans. It never overflows, because
    // Collector::Add() drops all spans that exceed this number. Add() counts
    // the spans that it drops, but the SDK would not report its drops.
    options.max_queue_size = collector->options_.max_spans;
    options.schedule_delay_millis = kDelay;
    options.max_export_batch_size = std::min(kBatch, options.max_queue_size);
    processor = sdk::trace::BatchSpanProcessorFactory::Create(
        std::make_unique<Exporter>(collector), options);
  }

  std::unique_ptr<sdk::trace::Recordable> ToRecordable(const Span& span) const {
    auto result = processor->MakeRecordable();
    result->SetResource(resource);
    result->SetInstrumentationScope(*scope);
    result->SetIdentity(ToSdk(span.context, span.tracestate),
                        ToSdk(span.parent));
    result->SetTraceFlags(api::TraceFlags(api::TraceFlags::kIsSampled));
    result->SetName(span.name);
    result->SetSpanKind(span.is_server ? api::SpanKind::kServer
                                       : api::SpanKind::kInternal);
    const std::chrono::nanoseconds start(absl::ToUnixNanos(span.start));
    const std::chrono::nanoseconds end(absl::ToUnixNanos(span.end));
    result->SetStartTime(SystemTimestamp(start));
    result->SetDuration(end - start);
    for (const Attribute& attribute : span.attributes) {
      if (const auto* number = std::get_if<int64_t>(&attribute.value)) {
        result->SetAttribute(attribute.key, AttributeValue(*number));
      } else {
        // The collector rejects a whole batch if one string is not UTF-8.
        const std::string text =
            base::ToUtf8(std::get<std::string>(attribute.value));
        result->SetAttribute(attribute.key, AttributeValue(View(text)));
      }
    }
    for (const SpanContext& link : span.links) result->AddLink(ToSdk(link));
    if (!span.error.empty()) {
      result->SetStatus(api::StatusCode::kError,
                        View(base::ToUtf8(span.error)));
    }
    return result;
  }

  const sdk::resource::Resource resource;
  const nostd::unique_ptr<sdk::instrumentationscope::InstrumentationScope>
      scope =
          sdk::instrumentationscope::InstrumentationScope::Create("sfmamba");
  // This member is the last, so that it is destroyed first. Its waiting spans
  // refer to the members above.
  std::unique_ptr<sdk::trace::SpanProcessor> processor;
};

Collector::Collector(Options options)
    : options_(std::move(options)), sdk_(std::make_unique<Sdk>(this)) {}

Collector::~Collector() { stopping_ = stopped_ = true; }

void Collector::Add(const std::vector<Span>& spans) {
  const int64_t count = static_cast<int64_t>(spans.size());
  const bool fits = waiting_.fetch_add(count) + count <= options_.max_spans;
  if (!fits || stopping_.load()) {
    waiting_ -= count;
    dropped_ += count;
    return;
  }
  for (const Span& span : spans) {
    sdk_->processor->OnEnd(sdk_->ToRecordable(span));
  }
}

bool Collector::Stop(absl::Duration limit) {
  stopping_ = true;
  const bool sent =
      sdk_->processor->ForceFlush(absl::ToChronoMicroseconds(limit));
  stopped_ = true;
  return sent;
}

Collector::Counts Collector::TakeCounts() {
  return {exported_.exchange(0), dropped_.exchange(0)};
}

void Collector::Sent(int64_t spans, bool accepted) {
  waiting_ -= spans;
  (accepted ? exported_ : dropped_) += spans;
  // Reports only changes between success and failure. At shutdown, spans are
  // dropped on purpose, which is not reported as a failure.
  if (stopped_.load() || accepted == !failing_) return;
  failing_ = !accepted;
  options_.changed(accepted ? absl::OkStatus()
                            : absl::UnavailableError(LastError()));
}

}  // namespace sfmamba::tracing
