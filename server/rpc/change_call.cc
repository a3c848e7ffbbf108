#include "server/rpc/change_call.h"

#include <utility>

#include "absl/memory/memory.h"
#include "server/errors/reasons.h"
#include "server/rpc/call.h"
#include "server/rpc/grpc_status.h"

namespace sfmamba::rpc {

admin::Caller CallerOf(const grpc::CallbackServerContext& context) {
  return {context.peer(), AuthorizationOf(context)};
}

std::shared_ptr<ChangeCall> ChangeCall::New(observability::Method method,
                                            const RawCall& call,
                                            observability::Metrics* metrics,
                                            observability::Logger* log) {
  std::shared_ptr<ChangeCall> made =
      absl::WrapUnique(new ChangeCall(call.context));
  made->record_.emplace(method, call.request->Length(), call.context->peer(),
                        TraceparentOf(*call.context), metrics, log);
  made->record_->set_no_model();
  made->self_ = made;
  return made;
}

void ChangeCall::End(const absl::Status& status,
                     absl::FunctionRef<void()> write) {
  if (ended_.exchange(true)) return;
  if (status.ok()) write();
  Finish(EndCall(record_->Finish(status), context_));
}

void ChangeCall::OnCancel() { End(server::Cancelled("administration")); }

void ChangeCall::OnDone() {
  record_.reset();  // The request is in flight no more.
  const std::shared_ptr<ChangeCall> self = std::move(self_);
}

}  // namespace sfmamba::rpc
