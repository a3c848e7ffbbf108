#include "server/rpc/admin/change_call.h"

#include <utility>

#include "absl/memory/memory.h"
#include "server/errors/reasons.h"
#include "server/rpc/call_guard.h"
#include "server/rpc/grpc_status.h"

namespace sfmamba::rpc {

admin::Caller CallerOf(const grpc::CallbackServerContext& context) {
  admin::Caller caller;
  caller.peer = context.peer();
  caller.authorization = AuthorizationOf(context);
  return caller;
}

ChangeCall::ChangeCall(observability::Method method,
                       const grpc::ByteBuffer& request,
                       grpc::CallbackServerContext* context,
                       observability::Metrics* metrics,
                       observability::Logger* log)
    : context_(context),
      record_(std::make_unique<observability::RequestRecord>(
          method, request.Length(), context->peer(), TraceparentOf(*context),
          metrics, log)) {
  record_->set_no_model();
}

std::shared_ptr<ChangeCall> ChangeCall::New(
    observability::Method method, const grpc::ByteBuffer& request,
    grpc::CallbackServerContext* context, observability::Metrics* metrics,
    observability::Logger* log) {
  std::shared_ptr<ChangeCall> call =
      absl::WrapUnique(new ChangeCall(method, request, context, metrics, log));
  call->self_ = call;
  return call;
}

void ChangeCall::End(const absl::Status& status,
                     absl::FunctionRef<void()> write) {
  if (ended_.exchange(true)) return;
  if (status.ok()) write();
  Finish(EndCall(record_->Finish(status), context_));
}

void ChangeCall::OnCancel() { End(server::Cancelled("administration")); }

void ChangeCall::OnDone() {
  record_ = nullptr;  // The request is in flight no more.
  const std::shared_ptr<ChangeCall> self = std::move(self_);
}

}  // namespace sfmamba::rpc
