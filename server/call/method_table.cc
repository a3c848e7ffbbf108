#include "server/call/method_table.h"

namespace sfmamba::call {

CallRecord::CallRecord(const prediction::TransportEnvironment& environment,
                       observability::Method counted_as, const Call& call)
    : RequestRecord(counted_as, call.request_bytes(), call.info().peer,
                    call.info().traceparent, &environment.metrics,
                    &environment.log) {
  set_client(call.info().caller.name);
}

void MethodTable::Serve(const Method& method,
                        std::unique_ptr<Call> call) const {
  const absl::Status admitted =
      method.scope.has_value() ? call->Admit(*method.scope) : absl::OkStatus();
  if (admitted.ok()) {
    return method.handle(env_, method.metric.value_or(observability::Method()),
                         std::move(call));
  }
  if (!method.metric.has_value()) return call->Finish(admitted, nullptr);
  CallRecord record(env_, *method.metric, *call);
  record.set_no_model();
  call->Finish(record.Finish(admitted), nullptr);
}

}  // namespace sfmamba::call
