#include "server/rpc/call_record.h"

#include "base/steady_clock.h"
#include "server/base/error.h"
#include "server/base/grpc_status.h"
#include "server/batching/batch_task.h"
#include "server/observability/trace_context.h"

namespace sfmamba::rpc {
namespace {

std::string TraceId(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("traceparent");
  std::string id;
  if (found != metadata.end()) {
    id = observability::TraceIdOf(
        absl::string_view(found->second.data(), found->second.size()));
  }
  return id.empty() ? observability::NewTraceId() : id;
}

}  // namespace

CallRecord::CallRecord(observability::Method method,
                       const google::protobuf::Message& request,
                       grpc::CallbackServerContext* context,
                       observability::Metrics* metrics,
                       observability::Logger* log)
    : method_(method),
      context_(*context),
      metrics_(*metrics),
      log_(*log),
      start_(base::SteadyNow()),
      trace_id_(TraceId(*context)),
      metrics_of_model_(&metrics->UnknownModel()) {
  metrics_.RequestStarted(method_, request.ByteSizeLong());
}

void CallRecord::set_model(const repository::ModelVersion& version) {
  model_name_ = version.name();
  held_ = version.metrics();
  metrics_of_model_ = held_.get();
}

grpc::Status CallRecord::Finish(const absl::Status& status) {
  const absl::Status traced =
      server::WithMetadata("trace_id", trace_id_, status);
  server::AddRetryPushback(traced, &context_);
  const absl::Duration duration = base::SteadyNow() - start_;
  metrics_of_model_->RequestDone(method_, status.code(), duration);
  metrics_.RequestFinished(method_);
  log_.Access({{"method", observability::MethodName(method_)},
               {"model", model_name_},
               {"code", absl::StatusCodeToString(status.code())},
               {"reason", server::GetErrorDetail(status).reason},
               {"error", status.message()},
               {"images", images_},
               {"milliseconds", absl::ToDoubleMilliseconds(duration)},
               {"request_id", request_id_},
               {"trace_id", trace_id_},
               {"peer", context_.peer()}});
  return server::ToGrpcStatus(traced);
}

}  // namespace sfmamba::rpc
