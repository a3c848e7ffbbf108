#include "server/observability/request_record.h"

#include <initializer_list>
#include <string>
#include <utility>

#include "base/steady_clock.h"
#include "server/errors/error.h"

namespace sfmamba::observability {
namespace {

// Returns true if an error with this code is the server's fault.
bool IsOwnFault(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal ||
         code == absl::StatusCode::kUnknown ||
         code == absl::StatusCode::kDataLoss;
}

}  // namespace

RequestRecord::RequestRecord(Method method, int64_t message_bytes,
                             std::string peer, absl::string_view traceparent,
                             Metrics* metrics, Logger* log)
    : method_(method),
      peer_(std::move(peer)),
      metrics_(*metrics),
      log_(*log),
      start_(base::SteadyNow()),
      trace_(TraceContextOf(traceparent)),
      model_(&metrics->UnknownModel()) {
  metrics_.RequestStarted(method_, message_bytes);
}

void RequestRecord::set_model(std::string name,
                              std::shared_ptr<ModelMetrics> metrics) {
  model_name_ = std::move(name);
  held_ = std::move(metrics);
  model_ = held_.get();
}

absl::Status RequestRecord::Finish(const absl::Status& status) {
  const absl::Duration duration = base::SteadyNow() - start_;
  const absl::Status& counted = status.ok() ? counted_as_ : status;
  const std::string reason =
      server::GetErrorDetail(server::WithErrorInfo(counted)).reason;
  model_->RequestDone(method_, counted.code(), reason, duration);
  const std::string trace_id = Hex(trace_.trace);
  const std::string code = absl::StatusCodeToString(counted.code());
  const std::initializer_list<LogField> fields = {
      {"method", MethodName(method_)},
      {"model", model_name_},
      {"code", code},
      {"reason", reason},
      {"error", counted.message()},
      {"images", images_},
      {"milliseconds", absl::ToDoubleMilliseconds(duration)},
      {"request_id", request_id_},
      {"trace_id", trace_id},
      {"client", client_},
      {"peer", peer_}};
  if (counted.ok()) {
    log_.Access(fields);
  } else if (IsOwnFault(counted.code())) {
    log_.AccessFailed(fields);
  } else {
    log_.AccessRefused(reason, fields);
  }
  return server::WithMetadata("trace_id", trace_id, status);
}

}  // namespace sfmamba::observability
