// Records the spans (timed steps) of a traced request.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"
#include "server/errors/error.h"
#include "server/prediction/prediction.h"

namespace sfmamba::prediction {
namespace {

using tracing::Span;

// Returns true if a span must be marked as failed because its step ended with
// the status `code`. OpenTelemetry's conventions for gRPC servers define these
// codes.
bool IsFault(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal ||
         code == absl::StatusCode::kUnknown ||
         code == absl::StatusCode::kDataLoss ||
         code == absl::StatusCode::kUnavailable ||
         code == absl::StatusCode::kUnimplemented ||
         code == absl::StatusCode::kDeadlineExceeded;
}

// Adds a span of the request's image `i`.
Span& AddSpan(const tracing::RequestTrace& trace, int i, const char* name,
              absl::Time start, absl::Time end, std::vector<Span>* spans) {
  spans->push_back(trace.MakeSpan(name, start, end));
  spans->back().attributes.push_back({"sfmamba.image", i});
  return spans->back();
}

void SetStatus(const absl::Status& status, Span* span) {
  if (status.ok()) return;
  span->attributes.push_back(
      {"sfmamba.reason",
       server::GetErrorDetail(server::WithErrorInfo(status)).reason});
  if (IsFault(status.code())) span->error = std::string(status.message());
}

}  // namespace

void Prediction::EndTrace(const absl::Status& status) const {
  if (trace_ == nullptr) return;
  std::vector<Span> spans;
  for (size_t i = 0; i < items_.size(); ++i) {
    AddSpans(static_cast<int>(i), &spans);
  }
  Span rpc = trace_->MakeSpan("rpc", record_.start(), base::SteadyNow(),
                              trace_->rpc().span);
  rpc.parent = trace_->parent();
  rpc.is_server = true;
  rpc.tracestate = trace_->tracestate();
  rpc.attributes = {{"rpc.system", request_.call.system},
                    {"rpc.method", observability::MethodName(request_.method)},
                    {"rpc.grpc.status_code", static_cast<int>(status.code())},
                    {"sfmamba.images", request_.images}};
  if (version_ != nullptr) {
    rpc.attributes.push_back({"sfmamba.model", version_->id()});
    rpc.attributes.push_back(
        {"sfmamba.version", absl::StrCat(version_->number())});
  }
  if (!record_.request_id().empty()) {
    rpc.attributes.push_back({"sfmamba.request_id", record_.request_id()});
  }
  SetStatus(status, &rpc);
  spans.push_back(std::move(rpc));
  trace_->Add(std::move(spans));
}

void Prediction::AddSpans(int i, std::vector<Span>* spans) const {
  const Item& item = items_[i];
  const size_t first = spans->size();
  const auto add = [this, i, spans](const char* name, absl::Time start,
                                    absl::Time end) {
    AddSpan(*trace_, i, name, start, end, spans);
  };
  if (item.decode_started != absl::InfinitePast()) {
    add("decode", item.decode_started,
        item.decode_started + item.decode + item.preprocess);
  }
  if (item.part_runs.empty()) AddSpans(i, item.run, spans);
  for (const InputRun& run : item.part_runs) AddSpans(i, run, spans);
  if (item.encode_started != absl::InfinitePast()) {
    add("postprocess", item.encode_started, item.ended);
  }
  // The last span of a failed image belongs to the stage that failed.
  if (spans->size() > first) SetStatus(item.status, &spans->back());
}

void Prediction::AddSpans(int i, const InputRun& run,
                          std::vector<Span>* spans) const {
  if (run.submitted == absl::InfinitePast()) return;
  const batching::BatchInfo& batch = run.batch;
  const bool has_run = batch.batch_size > 0;
  AddSpan(*trace_, i, "queue", run.submitted,
          has_run ? batch.started : run.submitted + batch.queue, spans);
  if (!has_run) return;
  Span& span = AddSpan(*trace_, i, "inference", batch.started,
                       batch.started + batch.inference, spans);
  span.context.span = run.span;
  if (!batch.span.empty()) span.links.push_back(batch.span);
}

}  // namespace sfmamba::prediction
